"""Non-maximum suppression of scored boxes for detection: of overlapping boxes, the one with the highest score is kept.

Numerics: NonMaxSuppressionSingleClassHelper and what calls it in tflite/kernels/detection_postprocess.cc
"""

from __future__ import annotations

import numpy as np

from oplet.kernels.arrays import Array
from oplet_builtin_ops.suppression.boxes import Boxes, choose_in_order

__all__ = ["fast_suppression", "regular_suppression", "suppress"]

_INFINITY = np.array(np.inf, np.float32)


def suppress(boxes: Boxes, scores: Array, threshold: float, overlap: float, most: int) -> Array:
    """Return the indices of the boxes that non-maximum suppression keeps, by descending score.

    Args:
        boxes: all boxes.
        scores: one for each box, float32.
        threshold: boxes of lower scores are dropped.
        overlap: boxes whose intersection over union with a better one is larger are dropped.
        most: the most boxes to keep.
    """
    (candidates,) = (scores >= np.float32(threshold)).nonzero()
    order = candidates.take(np.negative(scores.take(candidates)).argsort(kind="stable"))
    least = np.array(overlap, np.float32)
    return np.array(choose_in_order(boxes, order, most, lambda overlaps: overlaps > least), np.intp)


def fast_suppression(
    boxes: Boxes, scores: Array, threshold: float, overlap: float, most: int, classes: int
) -> tuple[Array, Array]:
    """Suppress boxes by their best score over all classes; return the kept boxes' indices and best classes, (boxes, classes).

    Args:
        boxes: all boxes.
        scores: (boxes, classes), float32.
        threshold: boxes of lower scores are dropped.
        overlap: boxes whose intersection over union with a better one is larger are dropped.
        most: the most boxes to keep.
        classes: the number of classes to return per box.
    """
    used = min(classes, scores.shape[1])
    best = np.maximum.reduce(scores, 1)
    if best.size and not np.maximum.reduce(best) <= _INFINITY:  # NaN
        best = np.fmax.reduce(scores, 1)
    kept = suppress(boxes, best, threshold, overlap, most)
    return kept, np.negative(scores.take(kept, 0)).argsort(axis=1, kind="stable")[:, :used]


def regular_suppression(
    boxes: Boxes, scores: Array, threshold: float, overlap: float, most: int, most_per_class: int
) -> tuple[Array, Array]:
    """Suppress the boxes of each class separately; return the indices of the best kept boxes and the class of each, (boxes, 1).

    Args:
        boxes: all boxes.
        scores: (boxes, classes), float32.
        threshold: boxes of lower scores are dropped.
        overlap: boxes whose intersection over union with a better one is larger are dropped.
        most: the most boxes to keep over all classes.
        most_per_class: the most boxes to keep of a class.
    """
    by_class = np.ascontiguousarray(scores.T)
    kept = [suppress(boxes, row, threshold, overlap, min(most_per_class, most)) for row in by_class]
    found, classes = np.concatenate(kept), np.repeat(np.arange(len(kept)), [len(part) for part in kept])
    order = np.argsort(-scores[found, classes], kind="stable")[:most]
    return found[order], classes[order, None]
