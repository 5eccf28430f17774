"""Non-maximum suppression of scored boxes: of those that overlap, the one with the highest score stays.

Numerics: NonMaxSuppressionSingleClassHelper and what calls it in tflite/kernels/detection_postprocess.cc
"""

from __future__ import annotations

import numpy as np

from oplet import checkpoint
from oplet_builtin_ops.shaping.shapes import Array

__all__ = ["fast_suppression", "regular_suppression", "suppress"]

_ZERO = np.float32(0)


def suppress(corners: Array, scores: Array, threshold: float, overlap: float, most: int) -> Array:
    """The numbers of the boxes that stay, by descending score.

    Args:
        corners: ymin, xmin, ymax, xmax of each box, float32.
        scores: one for each box, float32.
        threshold: boxes that score less do not take part.
        overlap: boxes whose intersection with a better one is a larger part of their union than this go.
        most: how many may stay.
    """
    candidates = np.flatnonzero(scores >= np.float32(threshold))
    candidates = candidates[np.argsort(-scores[candidates], kind="stable")]
    boxes = corners[candidates]
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    active = np.ones(len(candidates), np.bool_)
    kept: list[int] = []
    for position in range(len(candidates)):
        checkpoint()
        if len(kept) >= most:
            break
        if not active[position]:
            continue
        kept.append(position)
        rest = position + 1 + np.flatnonzero(active[position + 1 :])
        if len(rest):
            ratio = _overlaps(boxes[position], areas[position], boxes[rest], areas[rest])
            active[rest[ratio > np.float32(overlap)]] = False
    return candidates[kept]


def _overlaps(box: Array, area: Array, others: Array, areas: Array) -> Array:
    """Intersection over union of one box with others; 0 where a box is empty."""
    low, high = np.maximum(box[:2], others[:, :2]), np.minimum(box[2:], others[:, 2:])
    sides = np.maximum(high - low, _ZERO)
    common = sides[:, 0] * sides[:, 1]
    with np.errstate(all="ignore"):
        return np.asarray(np.where((areas > 0) & (area > 0), common / (area + areas - common), _ZERO))


def fast_suppression(
    corners: Array, scores: Array, threshold: float, overlap: float, most: int, classes: int
) -> tuple[Array, Array]:
    """Suppression by the best score of each box: the boxes that stay, and the best classes of each, (boxes, classes)."""
    used = min(classes, scores.shape[1])
    order = np.argsort(-scores, axis=1, kind="stable")[:, :used]
    best = np.take_along_axis(scores, order[:, :1], axis=1)[:, 0]
    kept = suppress(corners, best, threshold, overlap, most)
    return kept, order[kept]


def regular_suppression(
    corners: Array, scores: Array, threshold: float, overlap: float, most: int, most_per_class: int
) -> tuple[Array, Array]:
    """Suppression in each class apart: the boxes with the best scores of all, and the class of each."""
    boxes, classes = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for column in range(scores.shape[1]):
        kept = suppress(corners, scores[:, column], threshold, overlap, min(most_per_class, most))
        boxes, classes = np.append(boxes, kept), np.append(classes, np.full(len(kept), column))
        order = np.argsort(-scores[boxes, classes], kind="stable")[:most]
        boxes, classes = boxes[order], classes[order]
    return boxes, classes
