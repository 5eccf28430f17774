"""RESIZE_BILINEAR: each output pixel is a weighted mean of the four input pixels around it.

Two matrix products, one down the columns and one along the rows. Integers use LiteRT's weights of 10 bits; the sums are
exact in float64. uint8 follows the reference kernel's float32 arithmetic, operation by operation.
Numerics: tflite/kernels/internal/reference/resize_bilinear.h
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure
from oplet.schema.options import ResizeBilinearOptions
from oplet_builtin_ops.resize import prepare_resize, resized_shapes
from oplet_builtin_ops.shapes import Array, Thunk, defer_or_run

_TYPES = (TensorType.FLOAT32, TensorType.UINT8, TensorType.INT8, TensorType.INT16)

#: The integer kernel's 1.0.
_ONE = 1 << 10


def prepare(context: Context, node: Node) -> None:
    options = node.options(ResizeBilinearOptions)
    ensure(not (options.align_corners and options.half_pixel_centers), "align_corners and half_pixel_centers exclude each other.")
    prepare_resize(context, node, *_TYPES)
    if node.prepared:
        _add_scratch(context, node)


def _add_scratch(context: Context, node: Node) -> None:
    source, output = node.inputs[0], node.outputs[0]
    if source.type == TensorType.FLOAT32:
        context.add_temporary(node, (output.shape[0], output.shape[1], *source.shape[2:]), TensorType.FLOAT32)


def _float_positions(length: int, outputs: int, options: ResizeBilinearOptions) -> tuple[Array, Array, Array]:
    """For each output: the lower neighbour, the upper one, and how far towards the upper it lies."""
    one = np.float32(1)
    scale = np.float32(length) / (one * outputs)
    if options.align_corners and outputs > 1:
        scale = np.float32(length - 1) / (one * (outputs - 1))
    index = np.arange(outputs, dtype=np.float32)
    half = np.float32(0.5)
    real = (index + half) * scale - half if options.half_pixel_centers else index * scale
    lower = np.clip(np.floor(real).astype(np.int64), 0, length - 1)
    upper = np.minimum(np.ceil(real).astype(np.int64), length - 1)
    return lower, upper, real - lower.astype(np.float32)


def _integer_positions(length: int, outputs: int, options: ResizeBilinearOptions) -> tuple[Array, Array, Array]:
    """The same in steps of 1 / 1024."""
    scale = (_ONE * length + outputs // 2) // outputs
    if options.align_corners and outputs > 1:
        scale = (_ONE * (length - 1) + (outputs - 1) // 2) // (outputs - 1)
    real = np.arange(outputs) * scale + (scale // 2 - _ONE // 2 if options.half_pixel_centers else 0)
    lower = np.clip(real // _ONE, 0, length - 1)
    upper = np.clip((real + _ONE - 1) // _ONE, 0, length - 1)
    return lower, upper, real - _ONE * lower


def _matrix(length: int, positions: tuple[Array, Array, Array], one: int, dtype: np.dtype[np.generic]) -> Array:
    lower, upper, fraction = positions
    rows = np.arange(len(lower))
    matrix = np.zeros((len(lower), length), dtype)
    np.add.at(matrix, (rows, lower), one - fraction)
    np.add.at(matrix, (rows, upper), fraction)
    return matrix


def _bind_float(node: Node) -> Thunk:
    source, output = node.inputs[0].data, node.outputs[0].data
    options = node.options(ResizeBilinearOptions)
    batch, height, width, channels = source.shape
    down = _matrix(height, _float_positions(height, output.shape[1], options), 1, output.dtype)
    across = _matrix(width, _float_positions(width, output.shape[2], options), 1, output.dtype)
    shape = (batch, output.shape[1], width, channels)
    rows = node.temporaries[0].data if node.temporaries else np.empty(shape, output.dtype)
    flat_source, flat_rows = source.reshape(batch, height, -1), rows.reshape(batch, output.shape[1], -1)

    def run() -> None:
        np.matmul(down, flat_source, flat_rows)
        np.matmul(across, rows, output)

    return run


def _bind_integer(node: Node) -> Thunk:
    source, output = node.inputs[0].data, node.outputs[0].data
    options = node.options(ResizeBilinearOptions)
    batch, height, width, channels = source.shape
    wide = np.dtype(np.float64)
    down = _matrix(height, _integer_positions(height, output.shape[1], options), _ONE, wide)
    across = _matrix(width, _integer_positions(width, output.shape[2], options), _ONE, wide)
    unit, half = np.array(float(_ONE * _ONE)), np.array(float(_ONE * _ONE // 2))

    def run() -> None:
        rows = np.matmul(down, source.reshape(batch, height, -1).astype(wide))
        sums = np.matmul(across, rows.reshape(batch, -1, width, channels))
        # Halves are rounded away from zero.
        sums += np.copysign(half, sums)
        sums /= unit
        np.copyto(output, np.trunc(sums, sums), casting="unsafe")

    return run


def _bind_uint8(node: Node) -> Thunk:
    source, output = node.inputs[0].data, node.outputs[0].data
    options = node.options(ResizeBilinearOptions)
    top, bottom, down = _float_positions(source.shape[1], output.shape[1], options)
    left, right, across = _float_positions(source.shape[2], output.shape[2], options)
    one = np.float32(1)
    down, across = down[:, None, None], across[:, None]

    def run() -> None:
        values = source.astype(np.float32)
        upper, lower = values[:, top] * (one - down), values[:, bottom] * down
        sums = upper[:, :, left] * (one - across) + lower[:, :, left] * (one - across)
        sums += upper[:, :, right] * across
        sums += lower[:, :, right] * across
        sums += np.float32(0.5)
        np.copyto(output, sums, casting="unsafe")

    return run


def _bind(node: Node) -> Thunk:
    type = node.inputs[0].type
    if type == TensorType.FLOAT32:
        return _bind_float(node)
    return _bind_uint8(node) if type == TensorType.UINT8 else _bind_integer(node)


def bind(context: Context, node: Node) -> Thunk:
    return defer_or_run(context, node, resized_shapes, _bind)


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True)
