"""Ops that rearrange elements: Reshape, ExpandDims, Squeeze, Transpose, ConjugateTranspose, Reverse, ReverseV2, Roll, Tile.

Numerics: tensorflow/core/kernels/{reshape_op.h,transpose_op.cc,reverse_op.cc,roll_op.cc,tile_ops.cc}
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from oplet import Node, TensorType, ensure
from oplet.kernels.arrays import Array, Shape
from oplet.kernels.axes import read_int, read_ints, resolve_axis
from oplet.kernels.limits import listed, paced
from oplet_flex_ops.kernel import filled, viewed
from oplet_flex_ops.signature import INDICES, NUMBERS

#: numpy's least limit of dimensions.
_MOST_AXES = 32


def _reshaped(node: Node, given: Any) -> list[Array]:
    return [node.inputs[0].data.reshape(node.outputs[0].shape)]


def _reshape_shapes(node: Node, given: Any) -> list[Shape]:
    source, sizes = node.inputs[0], read_ints(node.inputs[1])
    ensure(len(sizes) <= _MOST_AXES and sizes.count(-1) <= 1, f"the shape {sizes} has more than {_MOST_AXES} axes or one -1.")
    if -1 in sizes:
        # Zeros among the sizes stand for those of the source, so that the rest can be shared out.
        total = prod(size for size in source.shape if size) if 0 in sizes else source.size
        known = prod(size for size in sizes if size not in (-1, 0))
        ensure(known > 0 and total % known == 0, f"the shape {sizes} does not fit the {source.size} elements of {source}.")
        sizes[sizes.index(-1)] = total // known
    ensure(
        min(sizes, default=0) >= 0 and prod(sizes) == source.size,
        f"{source} has {source.size} elements, which do not fit the shape {read_ints(node.inputs[1])}.",
    )
    return [tuple(sizes)]


RESHAPE = viewed("Reshape", "tensor: T, shape: Tshape[1]! -> output: T", _reshape_shapes, Tshape=INDICES)(_reshaped)


def _expand_shapes(node: Node, given: Any) -> list[Shape]:
    shape = node.inputs[0].shape
    axis = resolve_axis(read_int(node.inputs[1]), len(shape) + 1)
    return [(*shape[:axis], 1, *shape[axis:])]


EXPANDDIMS = viewed("ExpandDims", "input: T, dim: Tdim! -> output: T", _expand_shapes, Tdim=INDICES)(_reshaped)


def _squeeze_shapes(node: Node, dims: Sequence[int]) -> list[Shape]:
    source = node.inputs[0]
    axes = {resolve_axis(axis, source.ndim) for axis in dims}
    for axis in axes:
        ensure(source.shape[axis] == 1, f"axis {axis} of {source} has size {source.shape[axis]} and cannot be squeezed.")
    return [tuple(size for axis, size in enumerate(source.shape) if not (axis in axes if axes else size == 1))]


SQUEEZE = viewed(
    "Squeeze", "input: T -> output: T", _squeeze_shapes, lambda attributes: attributes.integers("squeeze_dims", default=())
)(_reshaped)


def _order(node: Node) -> list[int]:
    source, order = node.inputs[0], read_ints(node.inputs[1])
    ensure(
        sorted(order) == list(range(source.ndim)),
        f"perm is {order}; it must be a permutation of the {source.ndim} axes of {source}.",
    )
    return order


def _transpose_shapes(node: Node, given: Any) -> list[Shape]:
    return [tuple(node.inputs[0].shape[axis] for axis in _order(node))]


TRANSPOSE = viewed("Transpose", "x: T, perm: Tperm[1]! -> y: T", _transpose_shapes, Tperm=INDICES)(
    lambda node, given: [node.inputs[0].data.transpose(_order(node))]
)


@filled("ConjugateTranspose", "x: T, perm: Tperm[1]! -> y: T", _transpose_shapes, Tperm=INDICES)
def CONJUGATETRANSPOSE(given: Any, outputs: list[Array], x: Array, perm: Array) -> None:
    turned = x.transpose(perm.tolist())
    if x.dtype.kind == "c":
        np.conjugate(turned, out=outputs[0])
    else:
        outputs[0][...] = turned


_REVERSIBLE = (*NUMBERS, TensorType.BOOL, TensorType.STRING)


def _backwards(node: Node, axes: Sequence[int]) -> list[Array]:
    return [node.inputs[0].data[tuple(slice(None, None, -1 if axis in axes else 1) for axis in range(node.inputs[0].ndim))]]


def _reverse_shapes(node: Node, given: Any) -> list[Shape]:
    source, dims = node.inputs
    ensure(dims.size == source.ndim, f"{dims} must say for each of the {source.ndim} axes of {source} whether it is reversed.")
    return [source.shape]


def _reverse_v2_axes(node: Node) -> list[int]:
    axes = [resolve_axis(axis, node.inputs[0].ndim) for axis in read_ints(node.inputs[1])]
    ensure(len(set(axes)) == len(axes), f"the axes {read_ints(node.inputs[1])} name one twice.")
    return axes


def _reverse_v2_shapes(node: Node, given: Any) -> list[Shape]:
    _reverse_v2_axes(node)
    return [node.inputs[0].shape]


REVERSE = viewed("Reverse", "tensor: T, dims: BOOL[1]! -> output: T", _reverse_shapes, T=_REVERSIBLE)(
    lambda node, given: _backwards(node, node.inputs[1].data.nonzero()[0].tolist())
)
REVERSEV2 = viewed("ReverseV2", "tensor: T, axis: Tidx[1]! -> output: T", _reverse_v2_shapes, T=_REVERSIBLE, Tidx=INDICES)(
    lambda node, given: _backwards(node, _reverse_v2_axes(node))
)


def _roll_shapes(node: Node, given: Any) -> list[Shape]:
    source, shift, axis = node.inputs
    ensure(source.ndim >= 1, f"{source} must have at least one dimension.")
    ensure(shift.ndim <= 1 and shift.shape == axis.shape, f"{shift} and {axis} must be scalars, or vectors of one length.")
    return [source.shape]


@filled("Roll", "input: T, shift: Tshift, axis: Taxis -> output: T", _roll_shapes, Tshift=INDICES, Taxis=INDICES)
def ROLL(given: Any, outputs: list[Array], source: Array, shift: Array, axis: Array) -> None:
    moves = [0] * source.ndim
    for by, at in paced(zip(listed(shift), listed(axis))):
        moves[resolve_axis(at, source.ndim)] += by
    pairs: list[tuple[Any, Any]] = [((), ())]
    for size, by in zip(source.shape, moves):
        by %= max(size, 1)
        # What leaves at one end comes back at the other: two blocks an axis.
        blocks = [(slice(by, None), slice(None, size - by))] + ([(slice(None, by), slice(size - by, None))] if by else [])
        pairs = [((*to, a), (*of, b)) for to, of in pairs for a, b in blocks]
        ensure(len(pairs) <= 1 << 12, f"a tensor of {source.ndim} dimensions cannot be rolled along more than 12 of them.")
    for to, of in pairs:
        outputs[0][to] = source[of]


def _tile_shapes(node: Node, given: Any) -> list[Shape]:
    source, multiples = node.inputs[0], read_ints(node.inputs[1])
    ensure(
        len(multiples) == source.ndim <= 12 and min(multiples, default=0) >= 0,
        f"multiples is {multiples}; it must say for each of the {source.ndim} axes of {source} (12 at most) how often it is repeated.",
    )
    return [tuple(size * times for size, times in zip(source.shape, multiples))]


@filled("Tile", "input: T, multiples: Tmultiples[1]! -> output: T", _tile_shapes, Tmultiples=INDICES)
def TILE(given: Any, outputs: list[Array], source: Array, multiples: Array) -> None:
    apart = [part for size, times in zip(source.shape, multiples.tolist()) for part in (times, size)]
    once = source.reshape([part for size in source.shape for part in (1, size)])
    outputs[0].reshape(apart)[...] = once
