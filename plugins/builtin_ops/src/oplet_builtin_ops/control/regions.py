"""Recognizes body subgraphs of reductions, scatters and sorts that a numpy function can replace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from oplet import BuiltinOperator, Callee, Node, Tensor, TensorType, ensure
from oplet.schema.enums import ActivationFunctionType, StablehloComparisonType
from oplet.schema.stablehlo_options import StablehloCompareOptions

__all__ = ["body_function", "comparator", "ensure_comparator", "replaces"]

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
    BuiltinOperator.STABLEHLO_AND: np.bitwise_and,
    BuiltinOperator.LOGICAL_OR: np.logical_or,
    BuiltinOperator.STABLEHLO_OR: np.bitwise_or,
}

_ASCENDING = {
    BuiltinOperator.LESS: True,
    BuiltinOperator.LESS_EQUAL: True,
    BuiltinOperator.GREATER: False,
    BuiltinOperator.GREATER_EQUAL: False,
}


def _position(tensor: Tensor | None, inputs: Sequence[Tensor]) -> int:
    """Return the position of a tensor among the body's inputs; -1 if it is not one."""
    return next((i for i, candidate in enumerate(inputs) if candidate is tensor), -1)


def _is_plain(node: Node) -> bool:
    """Return whether a node computes on raw values: no fused activation, no quantized tensors."""
    activation: Any = getattr(node.raw_options, "fused_activation_function", ActivationFunctionType.NONE)
    tensors = [tensor for tensor in (*node.inputs, *node.outputs) if tensor is not None]
    scaled = any(tensor.quantization is not None and len(tensor.quantization.scales) for tensor in tensors)
    return activation == ActivationFunctionType.NONE and not scaled


def body_function(body: Callee, type: TensorType) -> np.ufunc | None:
    """Return the numpy ufunc that a subgraph of two inputs (a reduction's body) computes; None unless it is one known op."""
    if len(body.nodes) != 1 or len(body.outputs) != 1 or len(body.inputs) != 2:
        return None
    node = body.nodes[0]
    function = _FUNCTIONS.get(node.op)
    used = sorted(_position(tensor, body.inputs) for tensor in node.inputs)
    known = used == [0, 1] and node.outputs[0] is body.outputs[0] and _is_plain(node)
    alike = all(tensor.type is type for tensor in (*body.inputs, *body.outputs))
    return function if known and alike else None


def replaces(body: Callee) -> bool:
    """Return whether a subgraph of two inputs (old value, update) just returns the second, so that updates overwrite old values."""
    return not body.nodes and len(body.inputs) == 2 and len(body.outputs) == 1 and body.outputs[0] is body.inputs[1]


def ensure_comparator(body: Callee, operands: int) -> None:
    """Check that a comparator subgraph takes two values of each sorted tensor and returns a boolean.

    Raises:
        EnsureError: the subgraph takes or returns something else.
    """
    ensure(
        len(body.inputs) == 2 * operands, f"its comparator, {body}, takes {len(body.inputs)} values and must take {2 * operands}."
    )
    ensure(
        len(body.outputs) == 1 and body.outputs[0].type is TensorType.BOOL,
        lambda: f"its comparator, {body}, gives {', '.join(map(repr, body.outputs)) or 'nothing'} and must give one boolean.",
    )


def comparator(body: Callee) -> tuple[int, bool] | None:
    """Return (tensor number, ascending) if the comparator just compares the two values of one sorted tensor; else None."""
    if len(body.nodes) != 1 or body.nodes[0].outputs[0] is not body.outputs[0]:
        return None
    node = body.nodes[0]
    ascends: bool | None
    if node.op == BuiltinOperator.STABLEHLO_COMPARE:
        options = node.options(StablehloCompareOptions)
        if options.compare_type == StablehloComparisonType.STABLEHLO_COMPARISON_TYPE_FLOAT_TOTAL_ORDER:
            return None  # in total order -0 is below 0, and NaNs have signs
        relation = options.comparison_direction.name.rpartition("_")[2]
        ascends = {"LT": True, "LE": True, "GT": False, "GE": False}.get(relation)
    else:
        ascends = _ASCENDING.get(node.op)
    if ascends is None or len(node.inputs) != 2 or not _is_plain(node):
        return None
    first, second = (_position(tensor, body.inputs) for tensor in node.inputs)
    if min(first, second) < 0 or first == second or first // 2 != second // 2:
        return None
    return first // 2, ascends == (first < second)
