"""What the body of a reduction, scatter or sort does: a subgraph of one operation, which is recognised instead of run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oplet import BuiltinOperator, Callee, Context, Node, Tensor, ensure
from oplet.schema.stablehlo_options import StablehloCompareOptions

__all__ = ["body_function", "comparator"]

_FUNCTIONS = {
    BuiltinOperator.ADD: np.add,
    BuiltinOperator.STABLEHLO_ADD: np.add,
    BuiltinOperator.MUL: np.multiply,
    BuiltinOperator.STABLEHLO_MULTIPLY: np.multiply,
    BuiltinOperator.MAXIMUM: np.maximum,
    BuiltinOperator.STABLEHLO_MAXIMUM: np.maximum,
    BuiltinOperator.MINIMUM: np.minimum,
    BuiltinOperator.STABLEHLO_MINIMUM: np.minimum,
    BuiltinOperator.LOGICAL_AND: np.logical_and,
    BuiltinOperator.STABLEHLO_AND: np.logical_and,
    BuiltinOperator.LOGICAL_OR: np.logical_or,
    BuiltinOperator.STABLEHLO_OR: np.logical_or,
}

_ASCENDING = {
    BuiltinOperator.LESS: True,
    BuiltinOperator.LESS_EQUAL: True,
    BuiltinOperator.GREATER: False,
    BuiltinOperator.GREATER_EQUAL: False,
}


def _only_node(body: Callee) -> Node:
    ops = [node.op_name for node in body.nodes]
    ensure(len(ops) == 1, f"its body, {body}, does {' and '.join(ops) or 'nothing'}; only a body of one operation is known here.")
    return body.nodes[0]


def _position(tensor: Tensor | None, inputs: Sequence[Tensor]) -> int:
    """Which of the body's inputs a tensor is; -1 if none."""
    return next((i for i, candidate in enumerate(inputs) if candidate is tensor), -1)


def body_function(context: Context, index: int, ops: Sequence[BuiltinOperator] = tuple(_FUNCTIONS)) -> np.ufunc | None:
    """The function of two operands that a body computes; None if it has no nodes and so keeps one of its operands.

    Args:
        index: the body's subgraph.
        ops: the operations that it may be.

    Raises:
        EnsureError: the body does something else.
    """
    body = context.callee(index)
    if not body.nodes:
        return None
    node = _only_node(body)
    ensure(node.op in ops, f"its body, {body}, does {node.op_name}; known here are {', '.join(op.name for op in ops)}.")
    used = sorted(_position(tensor, body.inputs) for tensor in node.inputs)
    ensure(
        used == [0, 1] and len(body.outputs) == 1 and node.outputs[0] is body.outputs[0],
        f"its body, {body}, does not give the {node.op_name} of its two inputs.",
    )
    return _FUNCTIONS[node.op]


def comparator(context: Context, index: int, operands: int) -> tuple[int, bool]:
    """Which of the sorted tensors decides, and whether it ascends.

    Args:
        index: the comparator's subgraph.
        operands: how many tensors are sorted together.

    Raises:
        EnsureError: the comparator is not one comparison of two values of one operand.
    """
    body = context.callee(index)
    ensure(
        len(body.inputs) == 2 * operands, f"its comparator, {body}, takes {len(body.inputs)} values and must take {2 * operands}."
    )
    node = _only_node(body)
    if node.op == BuiltinOperator.STABLEHLO_COMPARE:
        relation = node.options(StablehloCompareOptions).comparison_direction.name.rpartition("_")[2]
        ensure(relation in ("LT", "LE", "GT", "GE"), f"its comparator, {body}, tests for {relation}, which is no order.")
        ascends = relation in ("LT", "LE")
    else:
        known = ", ".join(op.name for op in _ASCENDING)
        ensure(node.op in _ASCENDING, f"its comparator, {body}, does {node.op_name}; known here are STABLEHLO_COMPARE, {known}.")
        ascends = _ASCENDING[node.op]
    ensure(len(node.inputs) == 2, f"its comparator, {body}, compares {len(node.inputs)} values and must compare 2.")
    first, second = (_position(tensor, body.inputs) for tensor in node.inputs)
    ensure(
        min(first, second) >= 0 and first != second and first // 2 == second // 2,
        f"its comparator, {body}, must compare two values of one operand.",
    )
    return first // 2, ascends == (first < second)
