"""Colour ops: RGBToHSV, HSVToRGB, AdjustContrastv2, AdjustHue and AdjustSaturation.

Half-precision images are computed as floats, and rounded at the end.

Numerics: tensorflow/core/kernels/image/{colorspace_op.h,adjust_contrast_op.cc,adjust_hue_op.cc,adjust_saturation_op.cc}
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oplet import Node, Registration, TensorType, ensure
from oplet.kernels.arrays import Array, Shape
from oplet_flex_ops.kernel import filled, reserve
from oplet_flex_ops.signature import FLOATS, Signature


def _colour_shapes(node: Node, given: Any) -> list[Shape]:
    images = node.inputs[0]
    ensure(images.ndim >= 1 and images.shape[-1] == 3, f"{images} must have 3 channels, as its last axis.")
    return [images.shape]


def _wide(images: Array) -> Array:
    reserve(images.shape, 32)
    return images.astype(np.float32) if images.dtype.itemsize == 2 else images


def _hsv(images: Array) -> Array:
    red, green, blue = np.moveaxis(images, -1, 0)
    value = np.maximum(np.maximum(red, green), blue)
    spread = value - np.minimum(np.minimum(red, green), blue)
    with np.errstate(all="ignore"):
        saturation = np.where(value > 0, spread / value, 0)
        unit = 1 / (6 * spread)
        hue = np.where(
            red == value,
            unit * (green - blue),
            np.where(green == value, unit * (blue - red) + 2 / 6, unit * (red - green) + 4 / 6),
        )
    hue = np.where(spread > 0, hue, 0)
    return np.stack([np.where(hue < 0, hue + 1, hue), saturation, value], -1).astype(images.dtype)


def _rgb(images: Array) -> Array:
    hue, saturation, value = np.moveaxis(images, -1, 0)
    turn = hue * 6
    parts = (np.abs(turn - 3) - 1, 2 - np.abs(turn - 2), 2 - np.abs(turn - 4))
    return np.stack([(1 - saturation + saturation * np.clip(part, 0, 1)) * value for part in parts], -1).astype(images.dtype)


RGBTOHSV: Registration = filled(
    Signature("RGBToHSV", "images: T -> output: T", T=FLOATS),
    _colour_shapes,
    lambda given, outputs, images: np.copyto(outputs[0], _hsv(_wide(images)), casting="unsafe"),
)
HSVTORGB: Registration = filled(
    Signature("HSVToRGB", "images: T -> output: T", T=FLOATS),
    _colour_shapes,
    lambda given, outputs, images: np.copyto(outputs[0], _rgb(_wide(images)), casting="unsafe"),
)

_TYPES = (TensorType.FLOAT32, TensorType.FLOAT16)


def _contrast_shapes(node: Node, given: Any) -> list[Shape]:
    images = node.inputs[0]
    ensure(images.ndim >= 3, f"{images} must end with height, width and channels.")
    return [images.shape]


def _contrast(given: Any, outputs: list[Array], images: Array, factor: Array) -> None:
    wide = _wide(images)
    if wide.size:
        mean = wide.mean((-3, -2), keepdims=True, dtype=np.float32)
        outputs[0][...] = (wide - mean) * factor + mean


ADJUSTCONTRASTV2: Registration = filled(
    Signature("AdjustContrastv2", "images: T, contrast_factor: FLOAT32[0] -> output: T", T=_TYPES), _contrast_shapes, _contrast
)


def _adjust_shapes(node: Node, given: Any) -> list[Shape]:
    ensure(node.inputs[0].ndim >= 3, f"{node.inputs[0]} must end with height, width and channels.")
    return _colour_shapes(node, given)


def _adjust_hue(given: Any, outputs: list[Array], images: Array, delta: Array) -> None:
    colours = np.array(_wide(images))
    low, high = colours.min(-1), colours.max(-1)
    hue = _hsv(colours - low[..., None])[..., 0] * 6 + delta * 6
    with np.errstate(all="ignore"):
        turn = hue - np.floor(hue / 6) * 6
        parts = (np.abs(turn - 3) - 1, 2 - np.abs(turn - 2), 2 - np.abs(turn - 4))
        for channel, part in enumerate(parts):
            outputs[0][..., channel] = low + np.clip(part, 0, 1) * (high - low)


def _adjust_saturation(given: Any, outputs: list[Array], images: Array, scale: Array) -> None:
    colours = _hsv(_wide(images))
    colours[..., 1] = np.clip(colours[..., 1] * scale, 0, 1)
    outputs[0][...] = _rgb(colours)


ADJUSTHUE: Registration = filled(
    Signature("AdjustHue", "images: T, delta: FLOAT32[0] -> output: T", T=_TYPES), _adjust_shapes, _adjust_hue
)
ADJUSTSATURATION: Registration = filled(
    Signature("AdjustSaturation", "images: T, scale: FLOAT32[0] -> output: T", T=_TYPES), _adjust_shapes, _adjust_saturation
)
