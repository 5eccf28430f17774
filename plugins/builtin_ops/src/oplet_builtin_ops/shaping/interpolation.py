"""Bilinear interpolation: along rows and along columns, as products with small matrices.

Each output pixel is a weighted mean of two neighbours along either axis, so that resizing an axis is a product with a banded
matrix. It is computed in blocks of a few outputs, which depend on few inputs, so that BLAS multiplies few zeros. As zero times
infinity is NaN, outputs that are not finite are computed again from their four neighbours alone (`mend`).

Numerics: tflite/kernels/internal/reference/resize_bilinear.h
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, wraps
from itertools import chain

import numpy as np

from oplet.kernels.arrays import Array, Shape
from oplet.records import Row
from oplet_builtin_ops.layers.program import Call

__all__ = ["CALL_BYTES", "Neighbours", "between_shape", "float_neighbours", "integer_neighbours", "interpolate", "mend"]

#: The outputs of a block: fewer have more calls, more multiply more zeros.
_BLOCK = 16
#: The most channels for which one product with a matrix for all channels is faster than one product per row.
_FEW_CHANNELS = 4
#: The most pixels of a row for that, as the matrices for all channels are large.
_WIDE = 1 << 12
#: Bytes of a product's call with its matrix, unless the matrix is for all channels of a row that is not wide.
CALL_BYTES = 3 << 10
#: The integer kernel's fractions have 10 bits.
_ONE = 1 << 10

#: The outputs whose neighbours are computed at a time.
_PART = 1 << 16
#: The longest axis whose neighbours and matrices are cached.
_USUAL = 1 << 10

#: A function that computes neighbours: from the length of an axis, the number of outputs along it, and the two options.
Find = Callable[[int, int, bool, bool], "Neighbours"]


#: A slice of outputs, the slice of inputs that they depend on, and the matrix between the two.
Block = tuple[slice, slice, Array]


class Neighbours(Row):
    """The two source positions of each output along an axis, and the interpolation fraction.

    Attributes:
        lower: the position of the lower neighbour.
        upper: the position of the upper neighbour.
        fraction: the distance from the lower neighbour, 0 to `one`.
        one: the distance between two neighbours.
        blocks: a cache of small interpolation matrices, by dtype character.
    """

    lower: Array
    upper: Array
    fraction: Array
    one: int
    blocks: dict[str, list[Block]]


def remembered(find: Find) -> Find:
    """Decorate a function that returns Neighbours: cache the results for axes of usual lengths."""
    kept = lru_cache(maxsize=64)(find)

    @wraps(find)
    def found(length: int, outputs: int, align_corners: bool, half_pixel_centers: bool) -> Neighbours:
        make = kept if max(length, outputs) <= _USUAL else find
        return make(length, outputs, align_corners, half_pixel_centers)

    return found


@remembered
def float_neighbours(length: int, outputs: int, align_corners: bool, half_pixel_centers: bool) -> Neighbours:
    """Return the neighbours of `outputs` positions on an axis of `length` elements, computed in LiteRT's float32 arithmetic."""
    steps, spaces = (length - 1, outputs - 1) if align_corners and outputs > 1 else (length, outputs)
    scale, half = np.float32(steps) / np.float32(spaces), np.float32(0.5)
    found = Neighbours(np.empty(outputs, np.int32), np.empty(outputs, np.int32), np.empty(outputs, np.float32), 1, {})
    for part in _parts(outputs):
        index = np.arange(part.start, part.stop, dtype=np.float32)
        real = (index + half) * scale - half if half_pixel_centers else index * scale
        lower = found.lower[part] = np.clip(np.floor(real).astype(np.int64), 0, length - 1)
        found.upper[part] = np.clip(np.ceil(real).astype(np.int64), 0, length - 1)
        found.fraction[part] = real - lower.astype(np.float32)
    return found


@remembered
def integer_neighbours(length: int, outputs: int, align_corners: bool, half_pixel_centers: bool) -> Neighbours:
    """Return the neighbours of `outputs` positions on an axis of `length` elements, computed in LiteRT's 10-bit fixed point.

    The fractions are in lowest terms.
    """
    steps, spaces = (length - 1, outputs - 1) if align_corners and outputs > 1 else (length, outputs)
    scale = (_ONE * steps + spaces // 2) // spaces
    found = Neighbours(np.empty(outputs, np.int32), np.empty(outputs, np.int32), np.empty(outputs, np.int32), _ONE, {})
    terms = _ONE
    for part in _parts(outputs):
        real = np.arange(part.start, part.stop) * scale + (scale // 2 - _ONE // 2 if half_pixel_centers else 0)
        lower = found.lower[part] = np.clip(real // _ONE, 0, length - 1)
        upper = found.upper[part] = np.clip((real + _ONE - 1) // _ONE, 0, length - 1)
        # Both neighbours may be the same at an end, where the fractions add up to one in any case.
        found.fraction[part] = np.where(lower == upper, 0, real - _ONE * lower)
        terms = int(np.gcd.reduce(found.fraction[part], initial=terms))
    np.floor_divide(found.fraction, terms, found.fraction)
    return found._replace(one=_ONE // terms)


def _parts(outputs: int) -> Iterator[slice]:
    """Yield slices of a long axis, to bound the scratch memory."""
    return (slice(start, min(start + _PART, outputs)) for start in range(0, outputs, _PART))


def between_shape(source: Shape, output: Shape) -> Shape:
    """Return the shape of the intermediate map between the two passes (rows, columns), in the cheaper order."""
    batch, height, width, channels = source
    if output[1] >= height:
        return (batch, height, output[2], channels)
    return (batch, output[1], width, channels)


def _blocks(axis: Neighbours, length: int, dtype: np.dtype[np.generic]) -> Iterable[Block]:
    """Return the small matrices that interpolate along an axis of this length; cached for usual lengths."""
    if max(length, len(axis.lower)) > _USUAL:
        return _made_blocks(axis, length, dtype)
    if dtype.char not in axis.blocks:
        axis.blocks[dtype.char] = list(_made_blocks(axis, length, dtype))
    return axis.blocks[dtype.char]


def _made_blocks(axis: Neighbours, length: int, dtype: np.dtype[np.generic]) -> Iterator[Block]:
    count = len(axis.lower)
    size = min(_BLOCK, max(1, _BLOCK * count // length))
    for start in range(0, count, size):
        lower, upper, fraction = (array[start : start + size] for array in axis[:3])
        first, end = int(lower.min()), int(upper.max()) + 1
        rows = np.arange(len(lower))
        matrix = np.zeros((len(rows), end - first), dtype)
        matrix[rows, lower - first] = axis.one - fraction
        matrix[rows, upper - first] += fraction  # both neighbours may be the same
        yield slice(start, start + len(rows)), slice(first, end), matrix


def _resize_rows(source: Array, target: Array, axis: Neighbours) -> Iterator[Call]:
    batch, height = source.shape[:2]
    inputs, outputs = source.reshape(batch, height, -1), target.reshape(batch, target.shape[1], -1)
    for made, seen, matrix in _blocks(axis, height, target.dtype):
        yield np.matmul, (matrix, inputs[:, seen], outputs[:, made])


def _resize_columns(source: Array, target: Array, axis: Neighbours) -> Iterator[Call]:
    _, _, width, channels = source.shape
    blocks = _blocks(axis, width, target.dtype)
    if channels > _FEW_CHANNELS or max(width, target.shape[2]) > _WIDE:
        inputs, outputs = source.reshape(-1, width, channels), target.reshape(-1, target.shape[2], channels)
        for made, seen, matrix in blocks:
            yield np.matmul, (matrix, inputs[:, seen], outputs[:, made])
        return

    def flat(maps: Array, part: slice) -> Array:
        return maps.reshape(-1, maps.shape[2] * channels)[:, part.start * channels : part.stop * channels]

    alike = np.eye(channels, dtype=target.dtype)
    for made, seen, matrix in blocks:
        yield np.matmul, (flat(source, seen), np.kron(matrix.T, alike), flat(target, made))


def interpolate(source: Array, between: Array, target: Array, down: Neighbours, across: Neighbours) -> Iterator[Call]:
    """Return numpy calls that resize NHWC maps of one float type, without the final division by both axes' `one`."""
    if not target.size:
        return iter(())
    if target.shape[1] >= source.shape[1]:
        return chain(_resize_columns(source, between, across), _resize_rows(between, target, down))
    return chain(_resize_rows(source, between, down), _resize_columns(between, target, across))


def mend(source: Array, output: Array, down: Neighbours, across: Neighbours) -> None:
    """Recompute the rows of `output` with infinities or NaNs in the reference kernel's order, without products with 0.

    Args:
        source: float32, (batches, height, width, channels).
        output: the result of `interpolate`, (batches, rows, columns, channels).
        down: the neighbours along the columns.
        across: the neighbours along the rows.
    """
    if math.isfinite(np.add.reduce(output, None)):
        return
    right = across.fraction[:, None]
    left = np.float32(1) - right
    for image, target in zip(source, output):
        for row in np.flatnonzero(~np.isfinite(target).all((1, 2))).tolist():
            high, low, share = image[down.lower[row]], image[down.upper[row]], np.float32(down.fraction[row])
            rest = np.float32(1) - share
            sums = high[across.lower] * rest * left
            sums += low[across.lower] * share * left
            sums += high[across.upper] * rest * right
            sums += low[across.upper] * share * right
            target[row] = sums
