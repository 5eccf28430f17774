"""Values in delegates' buffers: everybody who reads a tensor sees its value, and buffers are freed once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from core.tests.chains import F32, add_chain, adding, interpret, like_input

from oplet import (
    BuiltinOperator,
    Context,
    Delegate,
    DelegateContext,
    DelegateFlags,
    Interpreter,
    ModelBuilder,
    Node,
    Registration,
)
from oplet.errors import DelegateError
from oplet.schema.options import IfOptions
from oplet_testing import invoke

DYNAMIC = DelegateFlags.ALLOW_DYNAMIC_TENSORS


class Device(Delegate):
    """Runs nodes that it claims on arrays of its own; what it writes is in its buffers only."""

    name = "Device"

    def __init__(self, *nodes: int, flags: DelegateFlags = DelegateFlags.NONE) -> None:
        super().__init__()
        self.nodes = nodes
        self.flags = flags
        self.buffers: dict[Any, Any] = {}
        self.copies = 0
        self.broken = False
        self._names: Iterator[int] = iter(range(1000))

    def prepare(self, context: DelegateContext) -> None:
        for node in self.nodes:  # each a kernel of its own
            if node < len(context.execution_plan) + 1:
                registration = Registration(prepare=like_input, invoke=self.invoke)
                context.replace_node_subsets_with_delegate_kernels(registration, [node])

    def invoke(self, context: Context, node: Node) -> None:
        source, target = node.inputs[0], node.outputs[0]
        mine = source.delegate is self and source.buffer_handle is not None
        value = self.buffers[source.buffer_handle] if mine else source.data
        if target.buffer_handle is None:
            target.buffer_handle = next(self._names)
        self.buffers[target.buffer_handle] = value + F32(1)
        target.data.fill(-99)
        target.data_is_stale = True

    def copy_from_buffer_handle(self, context: Context, handle: Any, tensor: Any) -> None:
        if self.broken:
            raise OSError("the bus is down")
        self.copies += 1
        tensor.data[...] = self.buffers[handle]

    def free_buffer_handle(self, context: Context, handle: Any) -> None:
        del self.buffers[handle]  # a KeyError if it was freed before


def make(*delegates: Delegate, **about: Any) -> Interpreter:
    return interpret(adding(4, outputs=(2, 4)), *delegates, **about)


def answer(interpreter: Interpreter, index: int = 4) -> list[float]:
    invoke(interpreter, np.zeros(3, F32))
    return interpreter.get_tensor(index).tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("flags", [DelegateFlags.NONE, DYNAMIC])
@pytest.mark.parametrize(
    ("nodes", "copies"),
    [((0,), 1), ((0, 1), 1), ((1, 2), 2), ((3,), 1), ((2, 3), 1), ((0, 1, 2, 3), 2), ((0, 2), 2), ((0, 1, 3), 2)],
)
def test_whoever_reads_sees_the_value_and_nothing_is_copied_twice(
    nodes: tuple[int, ...], copies: int, flags: DelegateFlags
) -> None:
    device = Device(*nodes, flags=flags)
    interpreter = make(device)
    for run in (1, 2, 3):
        assert answer(interpreter) == [4, 4, 4]
        assert interpreter.get_tensor(2).tolist() == [2, 2, 2]
        assert device.copies == copies * run
    interpreter.close()
    assert not device.buffers


def test_another_delegate_s_kernel_reads_the_value() -> None:
    first, second = Device(0, 1), Device(2, 3)
    interpreter = make(first, second)
    assert answer(interpreter) == [4, 4, 4]
    assert (first.copies, second.copies) == (1, 1)
    interpreter.remove_all_delegates()
    assert not first.buffers
    assert not second.buffers
    assert answer(interpreter) == [4, 4, 4]


def test_outputs_stay_in_buffers_where_the_application_allows_it() -> None:
    device = Device(0, 1, 2, 3)
    interpreter = make(device)
    interpreter.allow_buffer_handle_output = True
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.zeros(3, F32))
    interpreter.invoke()
    assert device.copies == 0
    handle, owner = interpreter.get_buffer_handle(4)
    assert owner is device
    assert device.buffers[handle].tolist() == [4, 4, 4]
    assert interpreter.get_tensor(4).tolist() == [4, 4, 4]
    assert device.copies == 1


@pytest.mark.parametrize("claimed", [(), (0,), (0, 1), (1, 2, 3)])
def test_an_input_may_be_in_a_buffer(claimed: tuple[int, ...]) -> None:
    device = Device(*claimed)
    interpreter = make(device)
    interpreter.allocate_tensors()
    device.buffers["mine"] = np.array([10, 20, 30], F32)
    interpreter.set_buffer_handle(0, "mine", device)
    interpreter._subgraphs[0].tensors[0].data_is_stale = True
    interpreter.invoke()
    assert interpreter.get_tensor(4).tolist() == [14, 24, 34]


def test_a_value_in_a_buffer_outlives_its_delegate() -> None:
    device = Device(0, 1)
    interpreter = make(device)
    device.buffers["mine"] = np.array([10, 20, 30], F32)
    interpreter.set_buffer_handle(0, "mine", device)
    interpreter._subgraphs[0].tensors[0].data_is_stale = True
    interpreter.remove_all_delegates()
    assert not device.buffers
    assert interpreter.get_buffer_handle(0) == (None, None)
    interpreter.invoke()
    assert interpreter.get_tensor(4).tolist() == [14, 24, 34]


def test_a_resize_frees_what_a_static_delegate_had_written() -> None:
    device = Device(0, 1)
    interpreter = make(device)
    assert answer(interpreter) == [4, 4, 4]
    interpreter.resize_tensor_input(0, [2])
    assert not device.buffers
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.zeros(2, F32))
    interpreter.invoke()
    assert interpreter.get_tensor(4).tolist() == [4, 4]


def test_a_copy_that_fails_says_which_tensor() -> None:
    device = Device(1)
    interpreter = make(device)
    device.broken = True
    with pytest.raises(RuntimeError, match=r"Device cannot copy the data of tensor 2 .*: the bus is down"):
        answer(interpreter)
    device.broken = False
    assert answer(interpreter) == [4, 4, 4]


def test_stale_data_without_a_buffer_is_an_error_and_not_a_wrong_value() -> None:
    interpreter = make(device := Device(3))
    interpreter.allocate_tensors()
    interpreter._subgraphs[0].tensors[4].data_is_stale = True
    with pytest.raises(DelegateError, match="is stale, and no delegate has a buffer"):
        interpreter.get_tensor(4)
    assert device.copies == 0


def test_the_value_of_a_body_s_output_reaches_its_caller() -> None:
    builder = ModelBuilder()
    main = builder.add_subgraph("main")
    main.add_tensor("condition", np.bool_, [1])
    main.add_tensor("x", F32, [3])
    main.add_tensor("y", F32, [3])
    main.add_tensor("z", F32, [3])
    main.add_operator(
        BuiltinOperator.IF, [0, 1], [2, 3], options=IfOptions(then_subgraph_index=1, else_subgraph_index=2)
    )  # fmt: skip
    main.set_inputs(0, 1)
    main.set_outputs(2, 3)
    add_chain(builder, 4, name="then", outputs=(2, 4))
    add_chain(builder, 4, name="else", outputs=(2, 4))

    class Bodies(Device):
        def prepare(self, context: DelegateContext) -> None:
            if context.subgraph_index == 1:
                super().prepare(context)

    device = Bodies(1, 3)
    interpreter = interpret(builder.to_bytes(), device, plugins=["oplet-builtin-ops"])
    interpreter.allocate_tensors()
    for condition in (True, False, True):
        interpreter.set_tensor(0, np.array([condition]))
        interpreter.set_tensor(1, np.zeros(3, F32))
        interpreter.invoke()
        assert interpreter.get_tensor(2).tolist() == [2, 2, 2]
        assert interpreter.get_tensor(3).tolist() == [4, 4, 4]
    assert device.copies == 4
