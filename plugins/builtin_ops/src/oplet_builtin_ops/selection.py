"""What SELECT and SELECT_V2 share."""

from __future__ import annotations

from typing import Final

import numpy as np

from oplet import Context, Node, Tensor, TensorType, ensure, ensure_type
from oplet_builtin_ops.shapes import Thunk, ensure_operands

__all__ = ["TYPES", "bind_selection", "keeps_declared_shape", "prepare_selection"]

#: Any type of 1, 2, 4 or 8 bytes.
TYPES: Final = (
    TensorType.FLOAT32,
    TensorType.FLOAT16,
    TensorType.BFLOAT16,
    TensorType.FLOAT64,
    TensorType.INT8,
    TensorType.UINT8,
    TensorType.INT16,
    TensorType.UINT16,
    TensorType.INT32,
    TensorType.UINT32,
    TensorType.INT64,
    TensorType.UINT64,
    TensorType.BOOL,
    TensorType.COMPLEX64,
)


def prepare_selection(context: Context, node: Node) -> tuple[Tensor, Tensor, Tensor]:
    """Check the three inputs and give the output its type."""
    ensure_operands(node, 3)
    condition, x, y = node.inputs
    ensure_type(condition, TensorType.BOOL)
    ensure_type(x, *TYPES)
    ensure(x.type == y.type, f"{x} and {y} must have the same type.")
    context.set_type(node.outputs[0], x.type)
    return condition, x, y


def keeps_declared_shape(node: Node) -> bool:
    """Whether all tensors hold one value, so that the output keeps the rank that the model declares."""
    return all(tensor.size == 1 for tensor in (*node.inputs, node.outputs[0]))


def bind_selection(node: Node, *, slices: bool = False) -> Thunk:
    """The thunk of either op, from shapes that `prepare` has found to fit.

    Args:
        slices: whether a condition of one dimension belongs to the first dimension of the others.
    """
    condition, x, y = (tensor.data for tensor in node.inputs)
    output = node.outputs[0].data
    if keeps_declared_shape(node):
        condition, x, y = (array.reshape(output.shape) for array in (condition, x, y))
    elif slices and condition.ndim == 1:
        condition = condition.reshape(condition.shape + (1,) * (x.ndim - 1))

    def run() -> None:
        output[...] = y
        np.copyto(output, x, where=condition)

    return run
