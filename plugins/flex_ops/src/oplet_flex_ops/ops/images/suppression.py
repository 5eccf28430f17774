"""NonMaxSuppression, V2 to V5, and NonMaxSuppressionWithOverlaps: of overlapping boxes the best one is kept.

Numerics: tensorflow/core/kernels/image/non_max_suppression_op.cc
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

import numpy as np

from oplet import TensorType, checkpoint, ensure
from oplet.kernels.arrays import Array
from oplet.kernels.limits import paced
from oplet_flex_ops.kernel import computed, reserve

__all__ = ["overlaps", "suppress"]

_F = np.float32
#: The overlaps of one box with several others.
Overlaps = Callable[[int, Array], Array]


_T = (TensorType.FLOAT32, TensorType.FLOAT16)
_SIZED = "boxes: T[2], scores: T[1], max_output_size: INT32[0]"
_LIMITS = "iou_threshold: T_threshold[0], score_threshold: T_threshold[0]"


def overlaps(boxes: Array) -> Overlaps:
    """Return a function for the intersection over union of boxes (n, 4), any two opposite corners (y, x); 0 for empty boxes."""
    wide = boxes.astype(_F)
    low, high = np.minimum(wide[:, :2], wide[:, 2:]), np.maximum(wide[:, :2], wide[:, 2:])
    with np.errstate(all="ignore"):
        area = (high[:, 0] - low[:, 0]) * (high[:, 1] - low[:, 1])

    def measure(one: int, others: Array) -> Any:
        with np.errstate(all="ignore"):
            size = np.maximum(np.minimum(high[one], high[others]) - np.maximum(low[one], low[others]), _F(0))
            shared = size[:, 0] * size[:, 1]
            found = shared / (area[one] + area[others] - shared)
        return np.where((area[one] <= 0) | (area[others] <= 0), _F(0), found)

    return measure


def suppress(measure: Overlaps, scores: Array, most: int, threshold: float, least: float) -> Array:
    """Return the indices of the boxes that suppression keeps, best first; of equal scores the first box wins.

    Args:
        measure: computes the overlaps of one box with several others.
        scores: float32, one for each box.
        most: the most boxes to keep.
        threshold: the overlap beyond which the box with the lower score is left out.
        least: boxes with this score or a lower one are left out.
    """
    chosen: list[int] = []
    left = (scores > least).nonzero()[0]
    left = left[np.argsort(-scores[left], kind="stable")]
    while len(left) and len(chosen) < most:
        checkpoint()
        best, left = int(left[0]), left[1:]
        chosen.append(best)
        left = left[~(measure(best, left) > threshold)]
    return np.array(chosen, np.int32)


def _soften(measure: Overlaps, scores: Array, most: int, least: float, sigma: float) -> tuple[Array, Array]:
    """Do soft NMS: return the kept boxes and their scores, decayed by the overlap with better boxes."""
    scale = _F(-0.5) / _F(sigma)
    # The heap holds the negative score, the box, and how many of the chosen ones it was compared with.
    heap = [(-float(scores[box]), box, 0) for box in paced((scores > least).nonzero()[0].tolist())]
    heapq.heapify(heap)
    chosen: list[int] = []
    kept: list[float] = []
    while heap and len(chosen) < most:
        checkpoint()
        negative, box, seen = heapq.heappop(heap)
        score = original = _F(-negative)
        if len(chosen) > seen:
            shared = measure(box, np.array(chosen[seen:][::-1]))
            for weight in np.exp(scale * shared * shared):
                score = score * weight
                if score <= least:
                    break
        if score == original:
            chosen.append(box)
            kept.append(float(score))
        elif score > least:
            heapq.heappush(heap, (-float(score), box, len(chosen)))
    return np.array(chosen, np.int32), np.array(kept, _F)


def _checked(boxes: Array, scores: Array, size: Array) -> int:
    ensure(
        boxes.shape == (scores.size, 4),
        f"boxes have the shape {list(boxes.shape)}; {scores.size} scores need [{scores.size}, 4].",
    )
    most = int(size)
    ensure(most >= 0, f"max_output_size is {most} and must not be negative.")
    return most


def _unit(value: Any, name: str) -> float:
    number = float(value)
    ensure(0 <= number <= 1, f"{name} is {number:g}; it must be in 0 to 1.")
    return number


def _lowest(scores: Array) -> float:
    return float(np.finfo(scores.dtype).min)


def _plain(threshold: float, boxes: Array, scores: Array, size: Array) -> Array:
    most = _checked(boxes, scores, size)
    return suppress(overlaps(boxes), scores, most, _unit(threshold, "iou_threshold"), _lowest(scores))


@computed("NonMaxSuppressionV2", f"{_SIZED}, iou_threshold: T_threshold[0] -> selected_indices: INT32", T=_T, T_threshold=_T)
def NONMAXSUPPRESSIONV2(given: Any, boxes: Array, scores: Array, size: Array, threshold: Array) -> Array:
    return _plain(float(threshold), boxes, scores.astype(_F), size)


def _v3(given: Any, boxes: Array, scores: Array, size: Array, threshold: Array, least: Array) -> Array:
    most = _checked(boxes, scores, size)
    return suppress(overlaps(boxes), scores.astype(_F), most, _unit(threshold, "iou_threshold"), float(least))


def _padded(chosen: Array, most: int, pad: bool) -> Array:
    if not pad:
        return chosen
    reserve((most,), 4)
    whole = np.zeros(most, chosen.dtype)
    whole[: len(chosen)] = chosen
    return whole


@computed(
    "NonMaxSuppressionV4",
    f"{_SIZED}, {_LIMITS} -> selected_indices: INT32, valid_outputs: INT32",
    lambda attributes: attributes.flag("pad_to_max_output_size", default=False),
    T=_T,
    T_threshold=_T,
)
def NONMAXSUPPRESSIONV4(pad: bool, boxes: Array, scores: Array, size: Array, threshold: Array, least: Array) -> list[Array]:
    chosen = _v3(None, boxes, scores, size, threshold, least)
    return [_padded(chosen, int(size), pad), np.array(len(chosen), np.int32)]


@computed(
    "NonMaxSuppressionV5",
    f"{_SIZED}, iou_threshold: T[0], score_threshold: T[0], soft_nms_sigma: T[0] "
    "-> selected_indices: INT32, selected_scores: T, valid_outputs: INT32",
    lambda attributes: attributes.flag("pad_to_max_output_size", default=False),
    T=_T,
)
def NONMAXSUPPRESSIONV5(
    pad: bool, boxes: Array, scores: Array, size: Array, threshold: Array, least: Array, sigma: Array
) -> list[Array]:
    most, limit = _checked(boxes, scores, size), _unit(threshold, "iou_threshold")
    ensure(float(sigma) >= 0, f"soft_nms_sigma is {float(sigma):g} and must not be negative.")
    wide = scores.astype(_F)
    if float(sigma) > 0:
        chosen, kept = _soften(overlaps(boxes), wide, most, float(least), float(sigma))
    else:
        chosen = suppress(overlaps(boxes), wide, most, limit, float(least))
        kept = wide[chosen]
    return [_padded(chosen, most, pad), _padded(kept, most, pad), np.array(len(chosen), np.int32)]


@computed(
    "NonMaxSuppressionWithOverlaps",
    "overlaps: FLOAT32[2], scores: FLOAT32[1], max_output_size: INT32[0], overlap_threshold: FLOAT32[0], "
    "score_threshold: FLOAT32[0] -> selected_indices: INT32",
)
def NONMAXSUPPRESSIONWITHOVERLAPS(given: Any, shared: Array, scores: Array, size: Array, threshold: Array, least: Array) -> Array:
    most = int(size)
    ensure(
        shared.shape == (scores.size,) * 2, f"overlaps have the shape {list(shared.shape)}; {scores.size} scores need a square."
    )
    ensure(most >= 0, f"max_output_size is {most} and must not be negative.")
    return suppress(lambda one, others: shared[others, one], scores, most, float(threshold), float(least))


NONMAXSUPPRESSION = computed(
    "NonMaxSuppression",
    "boxes: FLOAT32[2], scores: FLOAT32[1], max_output_size: INT32[0] -> selected_indices: INT32",
    lambda attributes: attributes.number("iou_threshold", default=0.5),
)(_plain)

NONMAXSUPPRESSIONV3 = computed("NonMaxSuppressionV3", f"{_SIZED}, {_LIMITS} -> selected_indices: INT32", T=_T, T_threshold=_T)(
    _v3
)
