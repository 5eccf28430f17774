"""Subgraphs: which inputs matter, their contexts, and tensors resized while invoking."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oplet import Context, Delegate, DelegateContext, Interpreter, ModelBuilder, MutableOpResolver, Node, Registration, TensorType
from oplet.errors import DelegateError

from .models import COPY_NAME, Fake, adds, build, opened, plan, scenario


@scenario("RemoveUnusedInputs.NothingToRemove", "RemoveUnusedInputs.HasUnusedInputs", "RemoveUnusedInputs.BypassInputsWithoutOp")
@pytest.mark.parametrize(
    ("inputs", "outputs", "nodes", "used"),
    [
        ([0, 1], [3], [([0, 1], [2]), ([2, 2], [3])], [0, 1]),
        ([0, 1, 2], [3], [([2, 2], [3])], [2]),
        ([0, 1, 2], [0, 2], [], [0, 2]),
    ],
    ids=["nothing to remove", "has unused", "bypass"],
)
def test_control_flow_copies_the_inputs_that_somebody_reads(
    inputs: list[int], outputs: list[int], nodes: list[Any], used: list[int]
) -> None:
    # LiteRT takes the others out of the list; here they keep their place, and callers ask `Callee.reads`.
    interpreter = opened(build(inputs, outputs, nodes, tensors=4))
    interpreter.allocate_tensors()
    callee = interpreter._runtime.executors[0].context.callee(0)
    assert [index for position, index in enumerate(inputs) if callee.reads(position)] == used
    assert [details["index"] for details in interpreter.get_input_details()] == inputs


class Looks(Delegate):
    """Calls `look` with the context of subgraph 0."""

    def __init__(self, look: Callable[[DelegateContext], None]) -> None:
        super().__init__()
        self.look = look

    def prepare(self, context: DelegateContext) -> None:
        if context.subgraph_index == 0:
            self.look(context)


@scenario("GetSubgraphContext.NonConstGetSubgraphContext")
def test_contexts_of_other_subgraphs() -> None:
    seen: list[Any] = []

    def look(context: DelegateContext) -> None:
        for wrong in (-1, 2):
            with pytest.raises(DelegateError, match=f"asks for subgraph {wrong}; the model has 2 subgraphs"):
                context.subgraph_context(wrong)
        other = context.subgraph_context(1)
        seen.extend([other.subgraph_index, other.execution_plan, other])
        assert context.subgraph_context(0).subgraph_index == 0

    opened(adds(names=["main", "body"]), Looks(look))
    assert seen[:2] == [1, [0, 1, 2]]
    with pytest.raises(DelegateError, match="forbidden"):
        seen[2].node(0)


@scenario("MarkSubgraphAsDelegationSkippable.MarkSubgraphAsDelegationSkippable")
def test_a_delegate_marks_subgraphs_that_it_has_taken() -> None:
    def look(context: DelegateContext) -> None:
        with pytest.raises(DelegateError, match="marks subgraph 0 as skippable"):
            context.mark_subgraph_as_delegation_skippable(0)
        with pytest.raises(DelegateError, match="asks for subgraph 2"):
            context.mark_subgraph_as_delegation_skippable(2)
        context.mark_subgraph_as_delegation_skippable(1)

    interpreter = opened(adds(names=["main", "body"]), Looks(look))
    assert [subgraph.delegated.skippable for subgraph in interpreter._subgraphs] == [False, True]
    interpreter.modify_graph_with_delegate(later := Fake([0, 1, 2]))
    assert plan(interpreter, 0) == [3]
    assert plan(interpreter, 1) == [0, 1, 2]  # the mark holds for delegates that come later
    assert later.count("claim") == 1
    interpreter.remove_all_delegates()
    assert not interpreter._subgraphs[1].delegated.skippable


def resized(*shapes: tuple[int, ...], type: TensorType = TensorType.INT32) -> list[np.ndarray[Any, Any]]:
    """The arrays of a dynamic output after each of several resizes in one run of its kernel."""
    seen = []

    def invoke(context: Context, node: Node) -> None:
        output = node.outputs[0]
        for shape in shapes:
            context.resize_tensor(output, shape if shape else output.shape)
            output.data[...] = b"" if output.dtype.hasobject else 1
            seen.append(output.data)

    builder = ModelBuilder()
    graph = builder.add_subgraph()
    graph.set_inputs(graph.add_tensor("x", type, [1]))
    graph.set_outputs(graph.add_tensor("y", type, [1]))
    graph.add_operator(COPY_NAME, [0], [1])
    ops = MutableOpResolver()
    ops.add_custom(COPY_NAME, Registration(prepare=lambda context, node: context.set_dynamic(node.outputs[0]), invoke=invoke))
    interpreter = Interpreter(model_content=builder.to_bytes(), op_resolver=ops, plugins=[])
    interpreter.allocate_tensors()
    interpreter.invoke()
    assert interpreter.get_tensor(1).shape == seen[-1].shape
    return seen


@scenario(
    "SubgraphResizeTensorTest.ResizeEmptyDynamicTensorAllocateData",
    "SubgraphResizeTensorTest.ResizeEmptyDynamicTensorWithStoredShapeAllocatesData",
)
@pytest.mark.parametrize(("asked", "shape"), [((5, 4, 3), (5, 4, 3)), ((), (1,))], ids=["a shape", "its own shape"])
def test_the_first_resize_brings_memory(asked: tuple[int, ...], shape: tuple[int, ...]) -> None:
    [array] = resized(asked)
    assert array.shape == shape
    assert array.flags.writeable


@scenario(
    "SubgraphResizeTensorTest.ResizeDynamicTensorWithTheEqualShapeIsANoop",
    "SubgraphResizeTensorTest.ResizeDynamicTensorWithStoredShapeIsANoop",
)
@pytest.mark.parametrize("again", [(5, 4, 3), ()], ids=["an equal shape", "its own shape"])
def test_a_resize_to_the_same_shape_keeps_the_memory(again: tuple[int, ...]) -> None:
    first, second = resized((5, 4, 3), again)
    assert first is second


@scenario(
    "SubgraphResizeTensorTest.ResizeDynamicTensorWithEquivalentBufferSizeIsANoop",
    "SubgraphResizeTensorTest.ResizeDynamicTensorWithDifferentShapeReallocatesData",
)
@pytest.mark.parametrize("other", [(3, 4, 5), (5, 4, 6)], ids=["as many bytes", "more bytes"])
def test_a_resize_to_another_shape_brings_memory_of_that_shape(other: tuple[int, ...]) -> None:
    # LiteRT keeps memory of as many bytes; here an array is bound to its shape, and a new one tells what read the old one.
    first, second = resized((5, 4, 3), other)
    assert second.shape == other
    assert second is not first


@scenario(
    "SubgraphResizeTensorTest.ResizeDynamicTensorWithSameShapeButStringTypeSizeReallocatesData",
    "SubgraphResizeTensorTest.ResizeDynamicTensorWithSameShapeButRessourceTypeSizeReallocatesData",
    "SubgraphResizeTensorTest.ResizeDynamicTensorWithSameShapeButVariantTypeSizeReallocatesData",
)
@pytest.mark.parametrize("type", [TensorType.STRING, TensorType.RESOURCE, TensorType.VARIANT])
def test_tensors_without_a_size_in_bytes_are_resized(type: TensorType) -> None:
    first, second = resized((5, 4, 3), (5, 4, 3), type=type)
    assert first is second
    assert first.shape == (5, 4, 3)
    assert resized((2,), (3,), type=type)[1].shape == (3,)
