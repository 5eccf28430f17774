"""Delegates and shapes that are known only while invoking."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from core.tests.chains import F32, like_input

from oplet import (
    Context,
    DelegateContext,
    DelegateFlags,
    DelegateKernel,
    DelegateParams,
    Interpreter,
    ModelBuilder,
    MutableOpResolver,
    Node,
    Registration,
    SimpleDelegate,
)
from oplet_testing import WrappingDelegate, invoke


def copy_prepare(context: Context, node: Node) -> None:
    if node.inputs[1].is_constant:
        context.resize_tensor(node.outputs[0], node.inputs[1].data.tolist())
    else:
        context.set_dynamic(node.outputs[0])


def copy(context: Context, node: Node) -> None:
    context.resize_tensor(node.outputs[0], node.inputs[1].data.tolist())
    node.outputs[0].data[...] = node.inputs[0].data


def same(context: Context, node: Node) -> None:
    node.outputs[0].data[...] = node.inputs[0].data


def subtract(context: Context, node: Node) -> None:
    np.subtract(node.inputs[0].data, node.inputs[1].data, node.outputs[0].data)


def two_copies(*, known: bool) -> bytes:
    """shape = Same(given); a = Same(Copy(x, shape)); b = Same(Copy(y, shape)); a - b."""
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x, y, a1, a2, b1, b2, out = (graph.add_tensor(name, F32, [4]) for name in ("x", "y", "a1", "a2", "b1", "b2", "out"))
    given = graph.add_tensor("given", np.int32, [1], data=np.array([4], np.int32) if known else None)
    shape = graph.add_tensor("shape", np.int32, [1])
    graph.add_operator("Same", [given], [shape])
    graph.add_operator("Copy", [x, shape], [a1])
    graph.add_operator("Same", [a1], [a2])
    graph.add_operator("Copy", [y, shape], [b1])
    graph.add_operator("Same", [b1], [b2])
    graph.add_operator("Subtract", [a2, b2], [out])
    graph.set_inputs(*((x, y) if known else (x, y, given)))
    graph.set_outputs(out)
    return builder.to_bytes()


class Same(DelegateKernel):
    """Copies each node's input to its output; unlike the runtime it does so for constants too while invoking."""

    def __init__(self, params: DelegateParams) -> None:
        self.nodes = params.nodes

    def prepare(self, context: Context, node: Node) -> None:
        for claimed in self.nodes:
            like_input(context, claimed)

    def bind(self, context: Context, node: Node) -> Callable[[], None]:
        def run() -> None:
            for claimed in self.nodes:
                same(context, claimed)

        return run


class Sames(SimpleDelegate):
    name = "Sames"
    flags = DelegateFlags.ALLOW_DYNAMIC_TENSORS

    def is_node_supported(self, context: DelegateContext, node: Node) -> bool:
        return node.op_name == "Same"

    def create_kernel(self, params: DelegateParams) -> DelegateKernel:
        return Same(params)


def make(*, known: bool) -> Interpreter:
    ops = MutableOpResolver()
    ops.add_custom("Same", Registration(prepare=like_input, invoke=same, pure=True))
    ops.add_custom("Copy", Registration(prepare=copy_prepare, invoke=copy, pure=True))
    ops.add_custom("Subtract", Registration(prepare=like_input, invoke=subtract, pure=True))
    return Interpreter(model_content=two_copies(known=known), op_resolver=ops, plugins=[])


def answer(interpreter: Interpreter, size: int = 4) -> list[float]:
    values = [np.arange(1, size + 1, dtype=F32), np.arange(10, 10 * size + 1, 10, dtype=F32), np.array([size], np.int32)]
    invoke(interpreter, *values[: len(interpreter.get_input_details())], resize=True)
    return interpreter.get_tensor(6).tolist()  # type: ignore[no-any-return]


def test_tensors_that_a_delegate_makes_dynamic_do_not_share_memory_any_more() -> None:
    interpreter = make(known=True)
    assert answer(interpreter) == [-9, -18, -27, -36]  # a1 and b1 are never needed together, and may lie in one place
    interpreter.modify_graph_with_delegate(Sames())
    assert [report.op for report in interpreter.explain()] == ["Sames", "Copy", "Copy", "Sames", "Subtract"]  # now they are
    assert answer(interpreter) == [-9, -18, -27, -36]


@pytest.mark.parametrize("known", [True, False], ids=["constant shape", "shape from an input"])
@pytest.mark.parametrize("claims", [set(claims) for n in range(7) for claims in itertools.combinations(range(6), n)], ids=str)
def test_the_wrapping_delegate_gives_the_answer_of_the_nodes_whatever_it_claims(claims: set[int], known: bool) -> None:
    interpreter = make(known=known)
    interpreter.modify_graph_with_delegate(WrappingDelegate(claims))
    assert answer(interpreter) == [-9, -18, -27, -36]
    if not known:
        assert answer(interpreter, 2) == [-9, -18]
        assert answer(interpreter, 5) == [-9, -18, -27, -36, -45]
    assert answer(interpreter) == [-9, -18, -27, -36]


class ShapedSames(Sames):
    """Needs the shapes of all nodes, which are propagated again at each resize."""

    flags = DelegateFlags.ALLOW_DYNAMIC_TENSORS | DelegateFlags.REQUIRE_PROPAGATED_SHAPES

    def is_node_supported(self, context: DelegateContext, node: Node) -> bool:
        return node.inputs[0].name == "x"


def size_of(context: Context, node: Node) -> None:
    context.set_constant(node.outputs[0], np.array([node.inputs[0].size], np.int32))


def bind_scaled(context: Context, node: Node) -> Callable[[], None]:
    values, scale, output = (tensor.data for tensor in (*node.inputs, *node.outputs))
    return lambda: np.multiply(values, scale, output)  # type: ignore[return-value]


@pytest.mark.parametrize("first", [4, 2])
@pytest.mark.parametrize("delegated", [False, True], ids=["no delegate", "delegate"])
def test_what_was_folded_of_a_late_shape_is_there_again_after_a_resize_that_leaves_that_shape(
    delegated: bool, first: int
) -> None:
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x, given = graph.add_tensor("x", F32, [4], shape_signature=[-1]), graph.add_tensor("given", np.int32, [1])
    claimed, late, out = (graph.add_tensor(name, F32, [1]) for name in ("claimed", "late", "out"))
    size, folded = (graph.add_tensor(name, np.int32, [1]) for name in ("size", "folded"))
    graph.add_operator("Same", [x], [claimed])
    graph.add_operator("Grow", [claimed, given], [late])  # its shape is known only in the run
    graph.add_operator("Size", [late], [size])
    graph.add_operator("Same", [size], [folded])
    graph.add_operator("Scaled", [claimed, folded], [out])
    graph.set_inputs(x, given)
    graph.set_outputs(out)

    def grow(context: Context, node: Node) -> None:
        context.resize_tensor(node.outputs[0], node.inputs[1].data.tolist())
        node.outputs[0].data.fill(0)

    ops = MutableOpResolver()
    ops.add_custom("Same", Registration(prepare=like_input, invoke=same, pure=True))
    ops.add_custom("Grow", Registration(prepare=lambda context, node: context.set_dynamic(node.outputs[0]), invoke=grow))
    ops.add_custom("Size", Registration(prepare=size_of, invoke=same, pure=True))
    ops.add_custom("Scaled", Registration(prepare=like_input, bind=bind_scaled))
    interpreter = Interpreter(model_content=builder.to_bytes(), op_resolver=ops, plugins=[])
    if delegated:
        interpreter.modify_graph_with_delegate(ShapedSames())
    for length, rows in ((first, 3), (5, 3), (5, 3), (1, 3), (first, 3), (first, 2), (6, 2), (6, 3)):
        invoke(interpreter, np.ones(length, F32), np.array([rows], np.int32), resize=True)
        assert interpreter.get_tensor(out).tolist() == [rows] * length
