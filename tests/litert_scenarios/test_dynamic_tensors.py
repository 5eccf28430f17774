"""Delegates and tensors whose shapes are known only while invoking."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from oplet import Context, Delegate, DelegateContext, DelegateFlags, Interpreter, Node, Registration
from oplet.errors import DelegateApplicationError, PrepareError

from .models import DYNAMIC, F32, NONE, SHAPES, build, opened, plan, resize, scenario, tensor


def copy_prepare(context: Context, node: Node) -> None:
    context.set_dynamic(node.outputs[0])
    for output in node.outputs[1:]:
        context.resize_tensor(output, node.inputs[0].shape)


def copy(context: Context, node: Node) -> None:
    context.resize_tensor(node.outputs[0], node.inputs[0].shape)
    for output in node.outputs:
        output.data[...] = node.inputs[0].data


COPY = Registration(prepare=copy_prepare, invoke=copy)


class Takes(Delegate):
    """Claims nodes from `first` on; its kernel sets no shapes, and insists that somebody else has."""

    def __init__(self, flags: DelegateFlags, first: int = 0) -> None:
        super().__init__()
        self.flags = flags
        self.first = first

    def prepare(self, context: DelegateContext) -> None:
        registration = Registration(prepare=self.check, invoke=copy)
        context.replace_node_subsets_with_delegate_kernels(registration, context.execution_plan[self.first :])

    def check(self, context: Context, node: Node) -> None:
        if self.first:
            assert node.inputs[0].is_dynamic
            return
        assert node.outputs[0].is_dynamic
        if node.outputs[1].shape != node.inputs[0].shape:
            raise ValueError(f"nobody told {node.outputs[1]} that the shape is {list(node.inputs[0].shape)}")


def dynamic_copy() -> Interpreter:
    return opened(build([0], [1, 2], [([0], [1, 2])], op="my_copy"), registration=COPY)


def copies(interpreter: Interpreter, index: int) -> bool:
    value = np.arange(np.prod(tensor(interpreter, 0).shape), dtype=F32).reshape(tensor(interpreter, 0).shape)
    interpreter.set_tensor(0, value)
    interpreter.invoke()
    return np.array_equal(interpreter.get_tensor(index), value)


@scenario(
    "TestDelegateWithDynamicTensors.DisallowDynamicTensors", "TestOpaqueDelegateBuilderWithDynamicTensors.DisallowDynamicTensors"
)
def test_a_static_delegate_is_not_asked_about_a_dynamic_graph() -> None:
    interpreter = dynamic_copy()
    with pytest.raises(DelegateApplicationError, match=r"graph that has dynamic-sized tensors \(tensor#1 is a dynamic"):
        interpreter.modify_graph_with_delegate(Takes(NONE))
    assert plan(interpreter) == [0]
    [report] = interpreter.delegation_reports()
    assert not report.applied
    assert "dynamic-sized" in report.error
    assert copies(interpreter, 1)


@scenario("TestDelegateWithDynamicTensors.AllowDynamicTensors", "TestOpaqueDelegateBuilderWithDynamicTensors.AllowDynamicTensors")
def test_a_dynamic_delegate_takes_a_dynamic_node() -> None:
    interpreter = dynamic_copy()
    interpreter.modify_graph_with_delegate(Takes(DYNAMIC))
    assert plan(interpreter) == [1]


@scenario(
    "TestDelegateWithDynamicTensors.ModifyGraphAfterAllocate",
    "TestOpaqueDelegateBuilderWithDynamicTensors.ModifyGraphAfterAllocate",
)
def test_an_allocated_graph_stays_allocated() -> None:
    interpreter = dynamic_copy()
    interpreter.allocate_tensors()
    interpreter.modify_graph_with_delegate(Takes(DYNAMIC))
    assert plan(interpreter) == [1]
    assert copies(interpreter, 1)
    interpreter.allocate_tensors()
    assert copies(interpreter, 2)


@scenario(
    "TestDelegateWithDynamicTensors.ShapePropagation_FlagSet",
    "TestOpaqueDelegateBuilderWithDynamicTensors.ShapePropagation_FlagSet",
)
def test_new_shapes_are_propagated_for_a_delegate_that_asks() -> None:
    interpreter = dynamic_copy()
    interpreter.allocate_tensors()
    interpreter.modify_graph_with_delegate(Takes(DYNAMIC | SHAPES))
    interpreter.allocate_tensors()
    resize(interpreter, 4)
    interpreter.allocate_tensors()
    assert copies(interpreter, 1)


@scenario(
    "TestDelegateWithDynamicTensors.ShapePropagation_FlagNotSet",
    "TestOpaqueDelegateBuilderWithDynamicTensors.ShapePropagation_FlagNotSet",
)
def test_new_shapes_are_not_propagated_for_a_delegate_that_does_not_ask() -> None:
    interpreter = dynamic_copy()
    interpreter.allocate_tensors()
    interpreter.modify_graph_with_delegate(Takes(DYNAMIC))
    interpreter.allocate_tensors()
    resize(interpreter, 4)
    with pytest.raises(PrepareError, match=r"nobody told tensor 2 .* that the shape is \[4\]"):
        interpreter.allocate_tensors()


def chain() -> bytes:
    return build([0], [2], [([0], [1]), ([1], [2])], op="my_copy")


@scenario("TestReleaseDynamicTensorWithDelegate.ShapePropagation_FlagNotSet", "BasicInterpreter.ReleaseDynamicTensors")
@pytest.mark.parametrize("delegated", [False, True])
def test_dynamic_tensors_can_be_released_once_they_are_read(delegated: bool) -> None:
    def run(release: bool) -> Interpreter:
        interpreter = opened(chain(), registration=COPY, release_dynamic_tensors=release)
        interpreter.allocate_tensors()
        if delegated:
            interpreter.modify_graph_with_delegate(Takes(DYNAMIC, first=1))
            assert plan(interpreter) == [0, 2]
            interpreter.allocate_tensors()
        assert copies(interpreter, 2)
        return interpreter

    assert tensor(run(release=False), 1).has_data
    interpreter = run(release=True)
    assert not tensor(interpreter, 1).has_data
    assert copies(interpreter, 2)
    held = weakref.ref(tensor(interpreter, 2).data)
    interpreter.close()
    gc.collect()
    assert held() is None
