"""RESIZE_BILINEAR: each output pixel is a weighted mean of the four input pixels around it.

Integers use LiteRT's weights of 10 bits, with sums that are exact in the float type; uint8 follows the reference kernel's float32
arithmetic, operation by operation unless all of them are exact.

Numerics: tflite/kernels/resize_bilinear.cc, tflite/kernels/internal/reference/resize_bilinear.h
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import Final

import numpy as np

from oplet import Context, Node, Registration, TensorType, charge, ensure
from oplet.kernels.arrays import Array, Shape, Thunk
from oplet.kernels.shapes import defer_or_run
from oplet.schema.options import ResizeBilinearOptions
from oplet_builtin_ops.arithmetic.single_precision import takes_halves
from oplet_builtin_ops.layers.program import Call, convert, run_calls, run_program
from oplet_builtin_ops.shaping.interpolation import (
    CALL_BYTES,
    Neighbours,
    between_shape,
    float_neighbours,
    integer_neighbours,
    interpolate,
    mend,
)
from oplet_builtin_ops.shaping.resize import prepare_resize, resized_shapes

_TYPES = (TensorType.FLOAT32, TensorType.UINT8, TensorType.INT8, TensorType.INT16)

#: The most fraction bits of both axes together for which products with 8-bit values, and the half for rounding, are exact in
#: float32.
_EXACT_BITS: Final = 7
#: Bytes of the tables per output row or column.
_NEIGHBOUR_BYTES: Final = 12


def _neighbours(node: Node) -> tuple[Neighbours, Neighbours]:
    """Return the source positions and weights for rows and for columns."""
    options, type = node.options(ResizeBilinearOptions), node.inputs[0].type
    find = integer_neighbours if type in (TensorType.INT8, TensorType.INT16) else float_neighbours
    pairs = zip(node.inputs[0].shape[1:3], node.outputs[0].shape[1:3])
    down, across = (find(length, outputs, options.align_corners, options.half_pixel_centers) for length, outputs in pairs)
    return down, across


def _scratch_shapes(node: Node) -> list[Shape]:
    source, output = node.inputs[0], node.outputs[0]
    if _is_one_pixel(node):
        return []
    between = between_shape(source.shape, output.shape)
    if source.type == TensorType.FLOAT32:
        return [between]
    if source.type == TensorType.UINT8:
        return [between, source.shape, output.shape] if _is_exact(node) else []
    return [between, source.shape, output.shape, output.shape]


def _is_one_pixel(node: Node) -> bool:
    """Return whether the output equals the input pixel because the map is a single pixel."""
    return node.inputs[0].shape[1:3] == (1, 1)


def _is_exact(node: Node) -> bool:
    """Return whether interpolating 8-bit values with these fractions is exact in float32, in any order of summation."""
    return all(not (axis.fraction * np.float32(1 << _EXACT_BITS) % 1).any() for axis in _neighbours(node))


def _scratch_type(node: Node) -> TensorType:
    """Return the float type that holds every intermediate sum exactly."""
    source = node.inputs[0]
    if source.type not in (TensorType.INT8, TensorType.INT16):
        return TensorType.FLOAT32
    down, across = _neighbours(node)
    largest = -np.iinfo(source.dtype).min * (down.one * across.one + 1)
    return TensorType.FLOAT32 if largest < 2**24 else TensorType.FLOAT64


def prepare(context: Context, node: Node) -> None:
    options = node.options(ResizeBilinearOptions)
    ensure(not (options.align_corners and options.half_pixel_centers), "align_corners and half_pixel_centers exclude each other.")
    prepare_resize(context, node, *_TYPES)
    if node.prepared and node.outputs[0].size:
        for shape in _scratch_shapes(node):
            context.add_temporary(node, shape)
        if (type := _scratch_type(node)) != TensorType.FLOAT32:
            for tensor in node.temporaries:
                context.set_type(tensor, type)


def _arrays(node: Node) -> Sequence[Array]:
    if node.temporaries:
        return [tensor.data for tensor in node.temporaries]
    dtype = np.float32 if _scratch_type(node) == TensorType.FLOAT32 else np.float64
    return [np.empty(shape, dtype) for shape in _scratch_shapes(node)]


def _bind_integer(node: Node) -> Thunk:
    source, output = node.inputs[0].data, node.outputs[0].data
    down, across = _neighbours(node)
    between, values, sums, halves = _arrays(node)
    one = np.array(down.one * across.one, sums.dtype)
    start: list[Call] = [(np.copyto, (values, source))]
    finish: list[Call] = [
        # Halves are rounded away from zero.
        (np.copysign, (one / 2, sums, halves)),
        (np.add, (sums, halves, sums)),
        (np.divide, (sums, one, sums)),
        (np.trunc, (sums, sums)),
        (convert, (output, sums)),
    ]
    return run_program(lambda: chain(start, interpolate(values, between, sums, down, across), finish), CALL_BYTES)


def _bind_uint8(node: Node) -> Thunk:
    source, output = node.inputs[0].data, node.outputs[0].data
    half = np.array(0.5, np.float32)
    if arrays := _arrays(node):
        between, real, total = arrays
        start: list[Call] = [(np.copyto, (real, source))]
        finish: list[Call] = [(np.add, (total, half, total)), (convert, (output, total))]
        neighbours = _neighbours(node)
        return run_program(lambda: chain(start, interpolate(real, between, total, *neighbours), finish), CALL_BYTES)
    (top, bottom, down, *_), (left, right, across, *_) = _neighbours(node)
    one = np.float32(1)
    down, across = down[:, None, None], across[:, None]

    def run() -> None:
        charge(4 * (source.size + 4 * output.size))
        values = source.astype(np.float32)
        upper, lower = values[:, top] * (one - down), values[:, bottom] * down
        sums = upper[:, :, left] * (one - across) + lower[:, :, left] * (one - across)
        sums += upper[:, :, right] * across
        sums += lower[:, :, right] * across
        sums += half
        convert(output, sums)

    return run


def _bind(node: Node) -> Thunk:
    source = node.inputs[0]
    if not node.outputs[0].size:  # its other dimensions may be of any size
        return run_calls([])
    charge(_NEIGHBOUR_BYTES * sum(node.outputs[0].shape[1:3]))
    if _is_one_pixel(node):
        return partial(np.copyto, node.outputs[0].data, source.data)
    if source.type == TensorType.FLOAT32:
        array, between, output = source.data, _arrays(node)[0], node.outputs[0].data
        axes = _neighbours(node)
        mended: list[Call] = [(mend, (array, output, *axes))]
        return run_program(lambda: chain(interpolate(array, between, output, *axes), mended), CALL_BYTES)
    return _bind_uint8(node) if source.type == TensorType.UINT8 else _bind_integer(node)


def bind(context: Context, node: Node) -> Thunk:
    return defer_or_run(context, node, resized_shapes, _bind, node.inputs[1:])


REGISTRATION = takes_halves(Registration(prepare=prepare, bind=bind, pure=True, types=_TYPES))
