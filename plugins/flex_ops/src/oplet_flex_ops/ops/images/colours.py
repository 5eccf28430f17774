"""Colour ops, and drawing. RGBToHSV, HSVToRGB, AdjustContrastv2, AdjustHue and AdjustSaturation.

Half-precision images are computed as floats, and rounded at the end.

Numerics: tensorflow/core/kernels/image/{colorspace_op.h,adjust_contrast_op.cc,adjust_hue_op.cc,adjust_saturation_op.cc}

DrawBoundingBoxes and DrawBoundingBoxesV2: one-pixel rectangles around boxes.

Numerics: tensorflow/core/kernels/image/draw_bounding_box_op.cc
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oplet import Node, TensorType, checkpoint, ensure
from oplet.kernels.arrays import Array, Shape
from oplet.kernels.limits import paced
from oplet_flex_ops.kernel import filled, reserve
from oplet_flex_ops.signature import FLOATS


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


RGBTOHSV = filled("RGBToHSV", "images: T -> output: T", _colour_shapes, T=FLOATS)(
    lambda given, outputs, images: np.copyto(outputs[0], _hsv(_wide(images)), casting="unsafe")
)
HSVTORGB = filled("HSVToRGB", "images: T -> output: T", _colour_shapes, T=FLOATS)(
    lambda given, outputs, images: np.copyto(outputs[0], _rgb(_wide(images)), casting="unsafe")
)

_TYPES = (TensorType.FLOAT32, TensorType.FLOAT16)


def _contrast_shapes(node: Node, given: Any) -> list[Shape]:
    images = node.inputs[0]
    ensure(images.ndim >= 3, f"{images} must end with height, width and channels.")
    return [images.shape]


@filled("AdjustContrastv2", "images: T, contrast_factor: FLOAT32[0] -> output: T", _contrast_shapes, T=_TYPES)
def ADJUSTCONTRASTV2(given: Any, outputs: list[Array], images: Array, factor: Array) -> None:
    wide = _wide(images)
    if wide.size:
        mean = wide.mean((-3, -2), keepdims=True, dtype=np.float32)
        outputs[0][...] = (wide - mean) * factor + mean


def _adjust_shapes(node: Node, given: Any) -> list[Shape]:
    ensure(node.inputs[0].ndim >= 3, f"{node.inputs[0]} must end with height, width and channels.")
    return _colour_shapes(node, given)


@filled("AdjustHue", "images: T, delta: FLOAT32[0] -> output: T", _adjust_shapes, T=_TYPES)
def ADJUSTHUE(given: Any, outputs: list[Array], images: Array, delta: Array) -> None:
    colours = np.array(_wide(images))
    low, high = colours.min(-1), colours.max(-1)
    hue = _hsv(colours - low[..., None])[..., 0] * 6 + delta * 6
    with np.errstate(all="ignore"):
        turn = hue - np.floor(hue / 6) * 6
        parts = (np.abs(turn - 3) - 1, 2 - np.abs(turn - 2), 2 - np.abs(turn - 4))
        for channel, part in enumerate(parts):
            outputs[0][..., channel] = low + np.clip(part, 0, 1) * (high - low)


@filled("AdjustSaturation", "images: T, scale: FLOAT32[0] -> output: T", _adjust_shapes, T=_TYPES)
def ADJUSTSATURATION(given: Any, outputs: list[Array], images: Array, scale: Array) -> None:
    colours = _hsv(_wide(images))
    colours[..., 1] = np.clip(colours[..., 1] * scale, 0, 1)
    outputs[0][...] = _rgb(colours)


#: Colours of boxes in turn, where a model gives none: red, green, blue and alpha.
_COLOURS = np.array(
    [
        [1, 1, 0, 1], [0, 0, 1, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0.5, 0, 0.5, 1], [0.5, 0.5, 0, 1], [0.5, 0, 0, 1], [0, 0, 0.5, 1],
        [0, 1, 1, 1], [1, 0, 1, 1],
    ],
    np.float32,
)  # fmt: skip


def _shapes(node: Node, given: Any) -> list[Shape]:
    images, boxes = node.inputs[:2]
    ensure(images.ndim == 4 and images.shape[3] in (1, 3, 4), f"{images} must be [batch, height, width, 1, 3 or 4].")
    ensure(
        boxes.ndim == 3 and boxes.shape[::2] == (images.shape[0], 4),
        f"{boxes} must be [{images.shape[0]}, boxes, 4]: y and x of two corners, in 0 to 1.",
    )
    for colours in node.inputs[2:]:
        ensure(colours.ndim == 2, f"{colours} must have a row for each colour.")
        ensure(colours.shape[1] >= images.shape[3], f"{colours} must have {images.shape[3]} channels.")
    return [images.shape]


def _draw(given: Any, outputs: list[Array], images: Array, boxes: Array, *given_colours: Array) -> None:
    output = outputs[0]
    output[...] = images
    _, height, width, depth = images.shape
    colours = given_colours[0] if given_colours and given_colours[0].size else _COLOURS
    if depth == 1 and colours is _COLOURS:
        colours = np.ones((len(_COLOURS), 1), np.float32)
    with np.errstate(all="ignore"):
        corners = boxes * np.array([height - 1, width - 1] * 2, np.float32)
    for image, of_image in zip(output, corners):
        checkpoint()
        for number, corner in enumerate(paced(of_image, 64)):
            if np.isfinite(corner).all():
                # far outside is as good as just outside
                _frame(
                    image, np.clip(corner, -(2.0**40), 2.0**40).astype(np.int64).tolist(), colours[number % len(colours), :depth]
                )


def _frame(image: Array, corner: list[int], colour: Array) -> None:
    height, width, _ = image.shape
    top, left, bottom, right = corner
    if top > bottom or left > right or top >= height or bottom < 0 or left >= width or right < 0:
        return
    rows, columns = slice(max(top, 0), min(bottom, height - 1) + 1), slice(max(left, 0), min(right, width - 1) + 1)
    if top >= 0:
        image[top, columns] = colour
    if bottom < height:
        image[bottom, columns] = colour
    if left >= 0:
        image[rows, left] = colour
    if right < width:
        image[rows, right] = colour


_DRAWN = (TensorType.FLOAT32, TensorType.FLOAT16)

DRAWBOUNDINGBOXES = filled("DrawBoundingBoxes", "images: T, boxes: FLOAT32 -> output: T", _shapes, T=_DRAWN)(_draw)
DRAWBOUNDINGBOXESV2 = filled("DrawBoundingBoxesV2", "images: T, boxes: FLOAT32, colors: FLOAT32 -> output: T", _shapes, T=_DRAWN)(
    _draw
)
