"""Shared parts of SELECT and SELECT_V2."""

from __future__ import annotations

from typing import Final

import numpy as np

from oplet import Context, Node, Tensor, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.operands import ensure_operands
from oplet_builtin_ops.types import NUMBERS

__all__ = ["bind_selection", "keeps_declared_shape", "prepare_selection"]

_MASKS: Final = {1: TensorType.INT8, 2: TensorType.INT16, 4: TensorType.INT32, 8: TensorType.INT64}


def prepare_selection(context: Context, node: Node) -> tuple[Tensor, Tensor, Tensor]:
    """Check the three inputs, set the output's type, and return the condition and the two choices."""
    ensure_operands(node, 3)
    condition, x, y = node.inputs
    ensure_type(condition, TensorType.BOOL)
    ensure_type(x, *NUMBERS)
    ensure(x.type == y.type, lambda: f"{x} and {y} must have the same type.")
    context.set_type(node.outputs[0], x.type)
    if not condition.is_constant:
        context.add_temporary(node, condition.shape, _MASKS[x.dtype.itemsize])
    return condition, x, y


def keeps_declared_shape(node: Node) -> bool:
    """Return whether all tensors have exactly one element, in which case the output keeps the rank that the model declares."""
    return all(tensor.size == 1 for tensor in (*node.inputs, node.outputs[0]))


def bind_selection(node: Node, *, slices: bool = False) -> Thunk:
    """Return the function that runs SELECT or SELECT_V2 on the shapes that `prepare` checked.

    It computes y ^ ((x ^ y) & mask), as copying by a mask takes ten times as long.

    Args:
        node: the node.
        slices: whether a condition of one dimension selects along the first dimension of the others.
    """
    words = np.dtype(f"i{node.outputs[0].dtype.itemsize}")
    x, y, output = (tensor.data.view(words) for tensor in (*node.inputs[1:], node.outputs[0]))
    condition = node.inputs[0].data.view(np.int8)
    arrives = not node.inputs[0].is_constant

    def arrange() -> Array:
        return np.asarray(-(condition != 0).astype(words))  # any byte but 0 is true in a file

    mask = node.temporaries[0].data if arrives else node.cached(("mask", words), [node.inputs[0]], arrange, shared=True)
    if keeps_declared_shape(node):
        x, y, bits = (array.reshape(output.shape) for array in (x, y, mask))
    elif slices and condition.ndim == 1:
        bits = mask.reshape(condition.shape + (1,) * (x.ndim - 1))
    else:
        bits = mask

    def run() -> None:
        if arrives:
            np.negative(condition, mask, casting="same_kind")
        np.bitwise_xor(x, y, output)
        np.bitwise_and(output, bits, output)
        np.bitwise_xor(output, y, output)

    return run
