"""RESIZE_NEAREST_NEIGHBOR: each output pixel is the input pixel nearest to it.

Numerics: tflite/kernels/internal/reference/resize_nearest_neighbor.h
"""

from __future__ import annotations

from functools import partial

import numpy as np

from oplet import Context, Node, Registration, TensorType
from oplet.kernels.arrays import Array, Thunk, copier
from oplet.kernels.shapes import defer_or_run
from oplet.schema.options import ResizeNearestNeighborOptions
from oplet_builtin_ops.shaping.resize import prepare_resize, resized_shapes

_TYPES = (
    TensorType.FLOAT32, TensorType.FLOAT16, TensorType.BFLOAT16, TensorType.UINT8, TensorType.INT8, TensorType.INT16,
    TensorType.UINT16, TensorType.INT32, TensorType.UINT32, TensorType.BOOL,
)  # fmt: skip

#: The pixels whose positions are looked up at a time; positions take eight times the memory of the pixels.
_MANY = 1 << 20


def prepare(context: Context, node: Node) -> None:
    prepare_resize(context, node, *_TYPES)


def _nearest(length: int, outputs: int, align_corners: bool, half_pixel_centers: bool, part: slice | None = None) -> Array:
    """Return the input position of each output position (or of a part of them), in LiteRT's float32 arithmetic."""
    steps, spaces = (length - 1, outputs - 1) if align_corners and outputs > 1 else (length, outputs)
    scale = np.float32(steps) / np.float32(spaces)
    first, end = (0, outputs) if part is None else (part.start, part.stop)
    real = (np.arange(first, end, dtype=np.float32) + np.float32(0.5 if half_pixel_centers else 0)) * scale
    # With aligned corners, positions are rounded to nearest, halves up.
    whole = np.floor(real.astype(np.float64) + 0.5) if align_corners else np.floor(real)
    return np.asarray(np.clip(whole.astype(np.int64), 0, length - 1))


def _bind(node: Node) -> Thunk:
    options = node.options(ResizeNearestNeighborOptions)
    source, output = node.inputs[0].data, node.outputs[0].data
    if not output.size:  # its other dimensions may be of any size
        return partial(output.fill, 0)
    (batch, height, width, channels), (_, out_height, out_width, _) = source.shape, output.shape
    if out_height * out_width > _MANY:
        return partial(_in_parts, source, output, options)
    rows, columns = (
        _nearest(length, outputs, options.align_corners, options.half_pixel_centers)
        for length, outputs in ((height, out_height), (width, out_width))
    )
    down, across = out_height // height, out_width // width
    if (down * height, across * width) == (out_height, out_width) and (
        np.array_equal(rows, np.arange(height).repeat(down)) and np.array_equal(columns, np.arange(width).repeat(across))
    ):
        # Every pixel is repeated equally often, as when an image is doubled.
        blocks = output.reshape(batch, height, down, width, across, channels)
        return copier(blocks, source[:, :, None, :, None])
    pixels = (rows[:, None] * width + columns).ravel()
    flat = source.reshape(batch, height * width, channels)
    # Positions are in range; with mode "clip", take writes directly into its target.
    return partial(flat.take, pixels, 1, output.reshape(batch, pixels.size, channels), "clip")


def _in_parts(source: Array, output: Array, options: ResizeNearestNeighborOptions) -> None:
    """Resize in parts, if the index arrays for all positions exceed the memory limit."""
    mode = options.align_corners, options.half_pixel_centers
    (_, height, width, _), (_, out_height, out_width, _) = source.shape, output.shape
    across = min(out_width, _MANY // 16)
    down = _MANY // across
    for left in range(0, out_width, across):
        x = slice(left, min(left + across, out_width))
        columns = _nearest(width, out_width, *mode, x)
        for top in range(0, out_height, down):
            y = slice(top, min(top + down, out_height))
            output[:, y, x] = source[:, _nearest(height, out_height, *mode, y)[:, None], columns]


def bind(context: Context, node: Node) -> Thunk:
    return defer_or_run(context, node, resized_shapes, _bind, node.inputs[1:])


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=_TYPES)
