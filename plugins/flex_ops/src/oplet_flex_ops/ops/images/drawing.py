"""DrawBoundingBoxes and DrawBoundingBoxesV2: one-pixel rectangles around boxes.

Numerics: tensorflow/core/kernels/image/draw_bounding_box_op.cc
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oplet import Node, Registration, TensorType, checkpoint, ensure
from oplet.kernels.arrays import Array, Shape
from oplet.kernels.limits import paced
from oplet_flex_ops.kernel import filled
from oplet_flex_ops.signature import Signature

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


_TYPES = (TensorType.FLOAT32, TensorType.FLOAT16)

DRAWBOUNDINGBOXES: Registration = filled(
    Signature("DrawBoundingBoxes", "images: T, boxes: FLOAT32 -> output: T", T=_TYPES), _shapes, _draw
)
DRAWBOUNDINGBOXESV2: Registration = filled(
    Signature("DrawBoundingBoxesV2", "images: T, boxes: FLOAT32, colors: FLOAT32 -> output: T", T=_TYPES), _shapes, _draw
)
