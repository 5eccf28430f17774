"""Objects in the output of a model that ultralytics (YOLO) exported, as its own `predict` finds them.

The output is raw (boxes, a score for each class, then what the task adds, for all anchors), of which the best are kept: scores above 0.25,
no two boxes of one class that overlap by more than 0.7, 300 at most. Or the model has selected them itself; then scores count alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oplet_tools.metadata.ultralytics import Ultralytics

__all__ = ["LEAST_SCORE", "MOST_OVERLAP", "TASKS", "Exported", "Found", "exported_as"]

Array = NDArray[Any]
#: Tasks whose models find objects.
TASKS = ("detect", "segment", "pose", "obb")
#: What ultralytics' `predict` keeps by default: scores above the first, overlaps up to the second; and how many boxes it takes and gives.
LEAST_SCORE, MOST_OVERLAP = 0.25, 0.7
_MOST_TAKEN, _MOST_BOXES = 30_000, 300


class Found(NamedTuple):
    """An object that a YOLO model found; coordinates are fractions of the input's width and height."""

    number: int  #: The index of its class.
    score: float
    box: tuple[float, float, float, float]  #: Left, top, right and bottom.
    points: tuple[tuple[float, ...], ...]  #: Corners of a rotated box, or keypoints: (x, y) each, or (x, y, visibility).


class Exported(NamedTuple):
    """The format of the output of a model that ultralytics (YOLO) exported."""

    classes: int  #: The number of classes.
    selected: bool  #: Whether the model itself does non-maximum suppression; otherwise `read` does.
    in_pixels: bool  #: Whether coordinates are pixels of the input; otherwise fractions of its size.
    turned: bool = False  #: Whether boxes are rotated; the last number is the angle in radians.
    #: The number of keypoints, and of values for each (2, or 3 with visibility); (0, 0) for none.
    keypoints: tuple[int, int] = (0, 0)

    def read(self, output: Array, size: tuple[int, int], shown: tuple[float, float] | None = None) -> list[Found]:
        """Return the objects in an output, the highest score first.

        Args:
            output: the real values, of shape [1, ...].
            size: height and width of the model's input, in pixels.
            shown: height and width, in pixels of the original picture, of the area that was resized to the input (boxes are
                rotated there); None for `size`.
        """
        # In a damaged model there are numbers that are none; what ultralytics would do with these is of no use.
        rows = np.nan_to_num(output[0].astype(np.float64), nan=0, posinf=0, neginf=0).clip(-(2.0**31), 2.0**31)
        if self.selected:
            boxes, scores, classes, rest = rows[:, :4], rows[:, 4], np.rint(rows[:, 5]).astype(np.int64), rows[:, 6:]
        else:
            rows = rows.T
            each = rows[:, 4 : 4 + self.classes]
            classes = each.argmax(1)
            boxes, scores, rest = rows[:, :4], each[np.arange(len(classes)), classes], rows[:, 4 + self.classes :]
        high = (scores > LEAST_SCORE).nonzero()[0]
        high = high[:_MOST_BOXES] if self.selected else high[np.argsort(-scores[high], kind="stable")][:_MOST_TAKEN]
        boxes, scores, classes, rest = boxes[high], scores[high], classes[high], rest[high]
        sides = np.array([size[1], size[0]] * 2, np.float64)
        if not self.in_pixels:
            boxes = boxes * sides
        angles = rest[:, -1] if self.turned else np.zeros(len(boxes))
        across = sides if shown is None else np.array([shown[1], shown[0]] * 2, np.float64)
        corners = _corners(boxes / sides * across, angles) / across[:2]
        if not self.selected or self.turned:
            boxes = np.concatenate([boxes, angles[:, None]], 1) if self.turned else _edges(boxes)
        if not self.selected:
            kept = _apart_turned(boxes, classes) if self.turned else _apart(boxes, classes)
            boxes, scores, classes, rest, corners = boxes[kept], scores[kept], classes[kept], rest[kept], corners[kept]
        points: Array = np.zeros((len(boxes), 0, 2))
        if self.turned:
            points = corners
            boxes = np.concatenate([corners.min(1, initial=2.0**33), corners.max(1, initial=-(2.0**33))], 1) * sides
        elif self.keypoints[0]:
            points = rest.reshape(len(boxes), *self.keypoints).copy()
            if self.in_pixels:
                points[..., :2] /= sides[:2]
        boxes = boxes / sides
        order = np.argsort(-scores, kind="stable")
        found = []
        for at in order:
            left, top, right, bottom = boxes[at].tolist()
            placed = tuple(tuple(point) for point in points[at].tolist())
            found.append(Found(int(classes[at]), float(scores[at]), (left, top, right, bottom), placed))
        return found


def exported_as(said: Ultralytics, shape: tuple[int, ...], channels_first: bool) -> Exported | None:
    """Return the format of an output of this shape; None if it is no list of objects.

    Args:
        said: the model's ultralytics metadata.
        shape: the output's shape.
        channels_first: whether the input is NCHW; otherwise NHWC.
    """
    classes = len(said.names)
    if said.task not in TASKS or not classes or len(shape) != 3 or shape[0] != 1:
        return None
    selected = bool(said.content.get("end2end")) or shape[2] == 6
    # Of exports with channels first, boxes that were selected inside are in pixels; all others are parts of the input's size.
    if selected and shape[2] >= 6:
        more, found = shape[2] - 6, Exported(classes, True, channels_first)
    elif not selected and shape[1] >= 4 + classes:
        more, found = shape[1] - 4 - classes, Exported(classes, False, False)
    else:
        return None
    if said.task == "obb":
        return found._replace(turned=True) if more == 1 else None
    if said.task == "pose":
        match said.content.get("kpt_shape"):
            case [int(count), int(each)] if count > 0 and each in (2, 3) and count * each == more:
                return found._replace(keypoints=(count, each))
    return found


def _edges(boxes: Array) -> Array:
    """Return left, top, right and bottom of boxes that are given by centre and size."""
    return np.concatenate([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2], 1)


def _corners(boxes: Array, angles: Array) -> Array:
    """Return the corners of boxes that are given by centre and size, and turned by angles."""
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    along = boxes[:, 2:3] / 2 * np.concatenate([cos, sin], 1)
    across = boxes[:, 3:4] / 2 * np.concatenate([-sin, cos], 1)
    centre = boxes[:, :2]
    return np.stack([centre + along + across, centre + along - across, centre - along - across, centre - along + across], 1)


def _apart(boxes: Array, classes: Array) -> list[int]:
    """Return the places of the boxes, the best first, that do not overlap too much with one of the same class that stays."""
    order = np.arange(len(boxes))
    areas = np.prod(np.maximum(boxes[:, 2:] - boxes[:, :2], 0), 1)
    kept: list[int] = []
    while order.size and len(kept) < _MOST_BOXES:
        best, order = int(order[0]), order[1:]
        kept.append(best)
        sides = np.minimum(boxes[best, 2:], boxes[order, 2:]) - np.maximum(boxes[best, :2], boxes[order, :2])
        shared = np.prod(np.maximum(sides, 0), 1)
        overlap = shared / np.maximum(areas[best] + areas[order] - shared, 1e-12)
        order = order[(overlap <= MOST_OVERLAP) | (classes[order] != classes[best])]
    return kept


def _apart_turned(boxes: Array, classes: Array) -> list[int]:
    """Return the places of turned boxes (centre, size, angle), the best first, that do not overlap too much with any better one of the same
    class, whether that one stays or not: ultralytics' selection, with its measure, the overlap of normal distributions.
    """
    x, y, width, height, angle = boxes.T
    cos2, sin2 = np.cos(angle) ** 2, np.sin(angle) ** 2
    w, h = width**2 / 12, height**2 / 12
    a, b, c = w * cos2 + h * sin2, w * sin2 + h * cos2, (w - h) * np.cos(angle) * np.sin(angle)
    spread = np.maximum(a * b - c**2, 0)
    tiny = 1e-7

    def overlaps(one: int) -> Array:
        better = np.arange(one)[classes[:one] == classes[one]]
        p, q, r = a[better] + a[one], b[better] + b[one], c[better] + c[one]
        across, down = x[better] - x[one], y[better] - y[one]
        joint = p * q - r**2
        distance = (p * down**2 + q * across**2) / (joint + tiny) * 0.25 - r * across * down / (joint + tiny) * 0.5
        distance += np.log(np.maximum(joint / (4 * np.sqrt(spread[better] * spread[one]) + tiny) + tiny, tiny)) * 0.5
        near: Array = 1 - np.sqrt(1 - np.exp(-distance.clip(tiny, 100)) + tiny) > MOST_OVERLAP
        return near

    kept: list[int] = []
    for one in range(len(boxes)):
        if len(kept) == _MOST_BOXES:
            break
        if not np.any(overlaps(one)):
            kept.append(one)
    return kept
