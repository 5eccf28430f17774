"""ImageProjectiveTransformV2 and V3: images warped by a projective transformation.

Numerics: tensorflow/core/kernels/image/image_ops.h
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from oplet import Node, TensorType, checkpoint, ensure
from oplet.kernels.arrays import Array, Shape
from oplet.kernels.axes import read_ints
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.kernel import filled, reserve
from oplet_flex_ops.ops.images.sampling import rounded
from oplet_flex_ops.signature import FLOATS

_F = np.float32
_TYPES = (*FLOATS, TensorType.UINT8, TensorType.INT32, TensorType.INT64)


class _Sampling(NamedTuple):
    nearest: bool
    mode: str


def _settings(attributes: Attributes) -> _Sampling:
    interpolation = attributes.text("interpolation", "NEAREST", "BILINEAR")
    mode = attributes.text("fill_mode", "CONSTANT", "REFLECT", "WRAP", "NEAREST", default="CONSTANT")
    return _Sampling(interpolation == "NEAREST", mode)


def _shapes(node: Node, given: Any) -> list[Shape]:
    images, transforms, size = node.inputs[:3]
    ensure(images.ndim == 4, f"{images} must be [batch, height, width, channels].")
    ensure(
        transforms.ndim == 2 and transforms.shape[1] == 8 and transforms.shape[0] in (1, images.shape[0]),
        f"{transforms} must have a row of 8 numbers for each of the {images.shape[0]} images, or one for all.",
    )
    ensure(size.shape == (2,), f"{size} must hold a height and a width.")
    height, width = read_ints(size)
    ensure(height > 0 and width > 0, f"{size} holds {height} and {width}, which must be above zero.")
    ensure(images.size > 0, f"{images} has no pixels.")
    return [(images.shape[0], height, width, images.shape[3])]


def _reflected(place: Array, length: int) -> Array:
    if length <= 1:
        return np.zeros_like(place)
    period = _F(2 * length)
    low = np.where(place < -period, period * np.trunc(-place / period) + place, place)
    low = np.where(low < -length, low + period, -low - 1)
    high = place - period * np.trunc(place / period)
    high = np.where(high >= length, period - high - 1, high)
    return np.where(place < 0, low, np.where(place > length - 1, high, place))


def _wrapped(place: Array, length: int) -> Array:
    if length <= 1:
        return np.zeros_like(place)
    last = _F(length - 1)
    low = place + length * (np.trunc(-place / last) + 1)
    high = place - length * np.trunc(place / last)
    return np.where(place < 0, low, np.where(place > last, high, place))


def _mapped(place: Array, length: int, mode: str) -> Any:
    """Map source positions outside the axis back into it by the fill mode; leave them for constant fill."""
    if mode == "CONSTANT":
        return place
    moved = place if mode == "NEAREST" else _reflected(place, length) if mode == "REFLECT" else _wrapped(place, length)
    return np.clip(moved, 0, _F(length - 1)).astype(_F)


def _read(image: Array, rows: Array, columns: Array, fill: Any) -> Array:
    """Return the pixels at integer positions, `fill` for those outside the image."""
    height, width, _ = image.shape
    with np.errstate(invalid="ignore"):
        inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    pixels = image[np.where(inside, rows, 0).astype(np.intp), np.where(inside, columns, 0).astype(np.intp)]
    pixels[~inside] = fill
    return pixels


def _transform(given: _Sampling, outputs: list[Array], images: Array, transforms: Array, size: Array, *fill: Array) -> None:
    _, out_height, out_width, depth = outputs[0].shape
    _, height, width, _ = images.shape
    value = images.dtype.type(fill[0]) if fill else images.dtype.type(0)
    reserve((out_height, out_width, 16 + 4 * depth), 4)
    across, down = np.arange(out_width, dtype=_F), np.arange(out_height, dtype=_F)[:, None]
    for number, (image, target) in enumerate(zip(images, outputs[0])):
        checkpoint()
        a = transforms[number if len(transforms) > 1 else 0]
        with np.errstate(all="ignore"):
            depth_of = a[6] * across + a[7] * down + _F(1)
            columns = _mapped((a[0] * across + a[1] * down + a[2]) / depth_of, width, given.mode)
            rows = _mapped((a[3] * across + a[4] * down + a[5]) / depth_of, height, given.mode)
            if given.nearest:
                target[...] = _read(image, rounded(rows), rounded(columns), value)
            else:
                target[...] = _bilinear(image, rows, columns, value)
        target[depth_of == 0] = value


def _bilinear(image: Array, rows: Array, columns: Array, fill: Any) -> Array:
    top, left = np.floor(rows), np.floor(columns)
    bottom, right = top + 1, left + 1
    before, behind = (right - columns)[..., None], (columns - left)[..., None]
    upper, lower = (
        before * _read(image, row, left, fill).astype(_F) + behind * _read(image, row, right, fill).astype(_F)
        for row in (top, bottom)
    )
    mixed = (bottom - rows)[..., None] * upper + (rows - top)[..., None] * lower
    found: Array = mixed.astype(image.dtype)
    return found


IMAGEPROJECTIVETRANSFORMV2 = filled(
    "ImageProjectiveTransformV2",
    "images: dtype, transforms: FLOAT32, output_shape: INT32! -> transformed_images: dtype",
    _shapes,
    _settings,
    dtype=_TYPES,
)(_transform)
IMAGEPROJECTIVETRANSFORMV3 = filled(
    "ImageProjectiveTransformV3",
    "images: dtype, transforms: FLOAT32, output_shape: INT32!, fill_value: FLOAT32[0] -> transformed_images: dtype",
    _shapes,
    _settings,
    dtype=_TYPES,
)(_transform)
