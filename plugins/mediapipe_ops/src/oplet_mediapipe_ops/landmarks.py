"""Shared parts of both versions of Landmarks2TransformMatrix: two landmarks that give the upward direction, and a box around
some.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from oplet import Context, Node, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Array
from oplet.kernels.operands import ensure_operands
from oplet.kernels.options import integer, integers

__all__ = ["Crop", "bounding_box", "prepare_landmarks", "turned"]


class Crop:
    """The landmarks that determine the crop.

    Attributes:
        left: the index of the landmark at the left end of the line that is to become horizontal.
        right: the index of the landmark at the right end of that line.
        subset: the indices of the landmarks that the box encloses.
    """

    def __init__(self, options: dict[str, Any], subset: str) -> None:
        self.left = integer(options, "left_rotation_idx", least=0)
        self.right = integer(options, "right_rotation_idx", least=0)
        indices = integers(options, subset, least=0)
        self.highest = max(self.left, self.right, *indices)
        self.subset = np.array(indices, np.intp)

    def direction(self, landmarks: Array) -> tuple[float, float]:
        """Return the vector (x, y) from the landmark `left` to the landmark `right`."""
        x, y = (landmarks[self.right, :2] - landmarks[self.left, :2]).tolist()
        return x, y


def prepare_landmarks(context: Context, node: Node, crop: Crop, fits: bool, layout: str) -> None:
    """Check the node's tensors and set its output shape.

    Args:
        crop: the landmarks that determine the crop.
        fits: whether the landmarks have the shape that this version of the op takes.
        layout: that shape in words, for the error message.
    """
    ensure_operands(node, 1, 1)
    landmarks, output = node.inputs[0], node.outputs[0]
    ensure_type(landmarks, TensorType.FLOAT32)
    ensure_type(output, TensorType.FLOAT32)
    ensure(fits and landmarks.size % 3 == 0, f"the landmarks {landmarks} must have the shape {layout}.")
    ensure(
        crop.highest < landmarks.size // 3,
        f"the options name landmark {crop.highest}; {landmarks} holds {landmarks.size // 3}.",
    )
    context.resize_tensor(output, (1, 4, 4))


def bounding_box(points: Array, turn: float, limit: float = math.inf) -> tuple[list[float], list[float]]:
    """Return the lowest and highest x and y of points rotated about the origin by `turn`.

    Args:
        points: one point per row, x and y first.
        turn: the angle in radians, from the x axis towards the y axis.
        limit: the lowest values are clamped to at most `limit`, the highest to at least `-limit`.
    """
    sine, cosine = math.sin(turn), math.cos(turn)
    flat = points[:, :2] @ np.array([[cosine, sine], [-sine, cosine]])
    low, high = np.minimum.reduce(flat).tolist(), np.maximum.reduce(flat).tolist()
    return [min(value, limit) for value in low], [max(value, -limit) for value in high]


def turned(x: float, y: float, sine: float, cosine: float) -> tuple[float, float]:
    """Rotate a point about the origin by the angle with this sine and cosine; return (x, y)."""
    return x * cosine - y * sine, x * sine + y * cosine
