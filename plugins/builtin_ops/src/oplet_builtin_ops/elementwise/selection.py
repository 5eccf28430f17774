"""SELECT: x where the condition is true, else y; a condition of one dimension selects slices. SELECT_V2: all three broadcast.

Numerics: tflite/kernels/select.cc
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import numpy as np

from oplet import Context, Node, Registration, Tensor, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.operands import ensure_operands
from oplet.kernels.shapes import offer_in_place
from oplet_builtin_ops.types import NUMBERS

_MASKS: Final = {1: TensorType.INT8, 2: TensorType.INT16, 4: TensorType.INT32, 8: TensorType.INT64}


def _prepare(context: Context, node: Node, shape_of: Callable[[Tensor, Tensor, Tensor], Sequence[int]]) -> None:
    """Check the three inputs, and set the output's type and shape, which `shape_of` gives for the condition and the two choices."""
    ensure_operands(node, 3)
    condition, x, y = node.inputs
    ensure_type(condition, TensorType.BOOL)
    ensure_type(x, *NUMBERS)
    ensure(x.type == y.type, lambda: f"{x} and {y} must have the same type.")
    output = node.outputs[0]
    context.set_type(output, x.type)
    if not condition.is_constant:
        context.add_temporary(node, condition.shape, _MASKS[x.dtype.itemsize])
    context.resize_tensor(output, output.shape if _keeps_declared_shape(node) else shape_of(condition, x, y))
    if x is not y:
        offer_in_place(node)


def _keeps_declared_shape(node: Node) -> bool:
    """Return whether all tensors have exactly one element, in which case the output keeps the rank that the model declares."""
    return all(tensor.size == 1 for tensor in (*node.inputs, node.outputs[0]))


def _bind(context: Context, node: Node, *, slices: bool = False) -> Thunk:
    """Return the function that runs SELECT or SELECT_V2 on the shapes that `prepare` checked.

    It computes y ^ ((x ^ y) & mask), as copying by a mask takes ten times as long; over y itself x ^ ((x ^ y) & ~mask).

    Args:
        node: the node.
        slices: whether a condition of one dimension selects along the first dimension of the others.
    """
    words = np.dtype(f"i{node.outputs[0].dtype.itemsize}")
    x, y, output = (tensor.data.view(words) for tensor in (*node.inputs[1:], node.outputs[0]))
    if over := node.writes_over(node.inputs[2]):
        x, y = y, x
    condition = node.inputs[0].data.view(np.int8)
    arrives = not node.inputs[0].is_constant

    def arrange() -> Array:
        return np.asarray(-((condition != 0) ^ over).astype(words))  # any byte but 0 is true in a file

    mask = node.temporaries[0].data if arrives else node.cached(("mask", words, over), [node.inputs[0]], arrange, shared=True)
    if _keeps_declared_shape(node):
        x, y, bits = (array.reshape(output.shape) for array in (x, y, mask))
    elif slices and condition.ndim == 1:
        bits = mask.reshape(condition.shape + (1,) * (x.ndim - 1))
    else:
        bits = mask

    def run() -> None:
        if arrives:
            np.subtract(condition, 1, mask, casting="same_kind") if over else np.negative(condition, mask, casting="same_kind")
        np.bitwise_xor(x, y, output)
        np.bitwise_and(output, bits, output)
        np.bitwise_xor(output, y, output)

    return run


def _select_shape(condition: Tensor, x: Tensor, y: Tensor) -> Sequence[int]:
    ensure(x.shape == y.shape, f"{x} and {y} must have the same shape.")
    ensure(
        condition.shape in (x.shape, (), x.shape[:1]),
        f"{condition} must be a scalar, have the shape of {x}, or be a vector of its first dimension.",
    )
    return x.shape


def _select_v2_shape(*tensors: Tensor) -> Sequence[int]:
    rank = max(tensor.ndim for tensor in tensors)
    alike = len({tensor.shape for tensor in tensors}) == 1
    ensure(rank <= 8 or alike, f"the inputs have up to {rank} dimensions; SELECT_V2 broadcasts 8.")
    padded = [(1,) * (rank - tensor.ndim) + tensor.shape for tensor in tensors]
    shape: list[int] = []
    for dims in zip(*padded):
        wanted = {dim for dim in dims if dim != 1} or {1}
        if len(wanted) != 1:
            given = "{}, {} and {}".format(*(list(tensor.shape) for tensor in tensors))
            ensure(False, f"Given shapes, {given}, are not broadcastable: {', '.join(map(str, tensors))}.")
        shape += wanted
    return shape


SELECT = Registration(
    prepare=partial(_prepare, shape_of=_select_shape), bind=partial(_bind, slices=True), pure=True, types=NUMBERS
)
SELECT_V2 = Registration(prepare=partial(_prepare, shape_of=_select_v2_shape), bind=_bind, pure=True, types=NUMBERS)
