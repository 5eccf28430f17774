"""Kernels that expand stored weights compute them without being prepared for each (`Registration.expands`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from core.tests.chains import F32, like_input

from oplet import (
    Context,
    Interpreter,
    Limits,
    ModelBuilder,
    MutableOpResolver,
    Node,
    Registration,
    Tensor,
    decline,
    ensure,
)
from oplet.errors import InvokeError, LimitError
from oplet.ops.serving.resolver import ChainOpResolver

STORED = np.arange(3, dtype=np.float16)


class Kernel:
    """Kernels of Wide, from float16 to float32, and of Sum, which adds what is wide to its input; they count their calls."""

    def __init__(self, expand: Callable[[Any, Any], None] = np.copyto) -> None:
        self.expand = expand
        self.expanded = self.prepared = 0

    def expands(self, source: Tensor, output: Tensor) -> Callable[[Any, Any], None] | None:
        return self.write if output.dtype == F32 else None

    def write(self, stored: Any, values: Any) -> None:
        self.expanded += 1
        self.expand(values, stored)

    def prepare(self, context: Context, node: Node) -> None:
        self.prepared += 1
        context.set_type(node.outputs[0], F32)
        like_input(context, node)

    def bind(self, context: Context, node: Node) -> Callable[[], None]:
        source, output = node.inputs[0].data, node.outputs[0].data
        return lambda: self.write(source, output)

    def resolver(self) -> MutableOpResolver:
        resolver = MutableOpResolver()
        resolver.add_custom("Wide", Registration(prepare=self.prepare, bind=self.bind, pure=True, expands=self.expands))
        resolver.add_custom("Sum", Registration(prepare=like_input, invoke=add, pure=True))
        return resolver


def add(context: Context, node: Node) -> None:
    np.add(node.inputs[0].data, node.inputs[1].data, node.outputs[0].data)


def model(stored: Any = STORED, kind: Any = F32) -> bytes:
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x, y = graph.add_tensor("x", F32, stored.shape), graph.add_tensor("y", F32, stored.shape)
    held, wide = graph.add_tensor("held", stored.dtype, stored.shape, data=stored), graph.add_tensor("wide", kind, stored.shape)
    graph.add_operator("Wide", [held], [wide])
    graph.add_operator("Sum", [x, wide], [y])
    graph.set_inputs(x)
    graph.set_outputs(y)
    return builder.to_bytes()


def answer(interpreter: Interpreter) -> Any:
    interpreter.allocate_tensors()
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def test_a_constant_is_expanded_once_and_its_node_neither_prepared_nor_run() -> None:
    kernel = Kernel()
    interpreter = Interpreter(model_content=model(), op_resolver=kernel.resolver())
    for shape in ([3], [2, 3], [1, 3]):
        interpreter.resize_tensor_input(0, shape)
        assert answer(interpreter).tolist() == np.broadcast_to(STORED, shape).tolist()
    assert (kernel.expanded, kernel.prepared) == (1, 0)


@pytest.mark.parametrize("how", ["another type", "checks", "no constant"])
def test_other_nodes_are_prepared(how: str) -> None:
    kernel, content = Kernel(), model(kind=np.int32 if how == "another type" else F32)
    if how == "no constant":
        builder = ModelBuilder()
        graph = builder.add_subgraph()
        x, y = graph.add_tensor("x", np.float16, [3]), graph.add_tensor("y", F32, [3])
        graph.add_operator("Wide", [x], [y])
        graph.set_inputs(x)
        graph.set_outputs(y)
        content = builder.to_bytes()
    interpreter = Interpreter(model_content=content, op_resolver=kernel.resolver(), checks=how == "checks")
    assert answer(interpreter).tolist() == ([0, 0, 0] if how == "no constant" else [0, 1, 2])
    assert kernel.prepared == 1


def test_what_cannot_be_expanded_is_an_error_of_the_run() -> None:
    def refuse(values: Any, stored: Any) -> None:
        ensure(False, "what is stored contradicts itself.")

    interpreter = Interpreter(model_content=model(), op_resolver=Kernel(refuse).resolver())
    interpreter.allocate_tensors()
    with pytest.raises(InvokeError, match=r"node 0 \(Wide\)|Node number 0"):
        interpreter.invoke()


def test_interpreters_of_one_model_share_large_expanded_constants_and_each_counts_them() -> None:
    kernel, content = Kernel(), model(np.ones(4000, np.float16))
    resolver = kernel.resolver()
    first = Interpreter(model_content=content, op_resolver=resolver)
    second = Interpreter(model_content=content, op_resolver=resolver)
    assert answer(first).tolist() == answer(second).tolist() == [1] * 4000
    assert kernel.expanded == 1
    with pytest.raises(LimitError):
        Interpreter(model_content=content, op_resolver=resolver, limits=Limits(max_arena_bytes=10_000)).allocate_tensors()


def test_the_kernel_that_expands_is_the_first_that_does_not_decline() -> None:
    def no(context: Context, node: Node) -> None:
        decline("it computes with no halves.")

    kernel = Kernel()
    own = MutableOpResolver()
    own.add_custom("Wide", Registration(prepare=no, invoke=add))
    interpreter = Interpreter(model_content=model(), op_resolver=ChainOpResolver([own, kernel.resolver()]))
    assert answer(interpreter).tolist() == [0, 1, 2]
    assert (kernel.expanded, kernel.prepared) == (1, 0)
    assert "no halves" in interpreter.explain()[0].why


def test_another_prepare_is_asked_whatever_the_kernel_that_it_replaces_expands() -> None:
    kernel = Kernel()
    registration = Registration(prepare=kernel.prepare, bind=kernel.bind, pure=True, expands=kernel.expands)
    assert registration.__replace__(types=(), differences="none").expands == kernel.expands
    assert registration.__replace__(prepare=like_input).expands is None
    assert registration.__replace__(prepare=like_input, expands=kernel.expands).expands == kernel.expands
