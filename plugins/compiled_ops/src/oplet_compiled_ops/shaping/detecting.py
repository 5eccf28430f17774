"""Detection post-processing: boxes are decoded relative to their anchors, then those that overlap a better one are suppressed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oplet_compiled_ops.library.kernels import kernel
from oplet_compiled_ops.library.lazy import inlined
from oplet_compiled_ops.shaping.suppression import intersection_over_union

__all__ = ["BEST", "DECODE", "PICK", "PLACE_WORDS"]

#: The words in which a call of PICK stores where it stopped, for the next call.
PLACE_WORDS = 2
#: About the comparisons of a call of PICK.
_COMPARISONS = 1 << 21

_ZERO = np.float32(0)
#: The bits of infinity; those of NaNs are above it.
_BEYOND = 0x7F800000
_inlined: Callable[..., Any] = inlined(error_model="numpy")


@kernel("void(f4[:,::1], f4[::1], f8, f8, f8, f8, f4[:,::1], i8[::1], i8, i8)")
def DECODE(  # type: ignore[no-untyped-def]
    boxes, anchors, y_scale, x_scale, height_scale, width_scale, corners, crossed, first, last
):
    """Compute the corners of boxes from centres and sizes relative to anchors.

    Args:
        boxes: a row for each box: its centre (y, x) and size (height, width) relative to its anchor; the row's other numbers are
            not read.
        anchors: centre (y, x) and size (height, width) of each box's anchor, flat.
        y_scale: the divisor of the boxes' first number.
        x_scale: that of the second.
        height_scale: that of the third.
        width_scale: that of the fourth.
        corners: receives top, left, bottom, right and area of each box.
        crossed: an error flag: receives the number of a box whose top is below its bottom, or its left right of its right; else
            unchanged.
        first: the first box.
        last: the box after the last one.
    """
    for box in range(first, last):
        anchor = 4 * box
        height, width = np.float64(anchors[anchor + 2]), np.float64(anchors[anchor + 3])
        y = np.float32(np.float64(boxes[box, 0]) / y_scale * height + np.float64(anchors[anchor]))
        x = np.float32(np.float64(boxes[box, 1]) / x_scale * width + np.float64(anchors[anchor + 1]))
        half_height = np.float32(0.5 * np.exp(np.float64(boxes[box, 2]) / height_scale) * height)
        half_width = np.float32(0.5 * np.exp(np.float64(boxes[box, 3]) / width_scale) * width)
        top, left, bottom, right = y - half_height, x - half_width, y + half_height, x + half_width
        corners[box, 0], corners[box, 1], corners[box, 2], corners[box, 3] = top, left, bottom, right
        corners[box, 4] = (bottom - top) * (right - left)
        if (top > bottom) | (left > right):
            crossed[0] = box


@kernel("void(f4[:,::1], i4[:,::1], i8, f4[::1], i8[::1], i8, i8)")
def BEST(scores, bits, skipped, best, kinds, first, last):  # type: ignore[no-untyped-def]
    """Find each box's class of the highest score, the first of equal ones; a NaN wins only if all are NaN.

    Args:
        scores: a row for each box, one score for each class.
        bits: the same memory as int32.
        skipped: how many classes at the beginning of a row do not count (the background).
        best: receives the highest score of each box.
        kinds: receives the class of that score, counted after the skipped ones.
        first: the first box.
        last: the box after the last one.
    """
    count = scores.shape[1]
    for box in range(first, last):
        row, numbers = scores[box], bits[box]
        # Integers that are in the order of the floats, whose largest one is found by vector instructions.
        most = np.int32(-0x80000000)
        for i in range(skipped, count):
            number = numbers[i]
            most = max(most, number ^ ((number >> np.int32(31)) & np.int32(0x7FFFFFFF)))
        found = skipped
        if (most > _BEYOND) | (most < -_BEYOND - 1):
            for i in range(skipped + 1, count):
                if (row[i] > row[found]) | ((row[found] != row[found]) & (row[i] == row[i])):
                    found = i
        elif (most == 0) | (most == -1):  # zeros of both signs are equal
            while row[found] != _ZERO:
                found += 1
        else:
            wanted = most ^ ((most >> np.int32(31)) & np.int32(0x7FFFFFFF))
            while numbers[found] != wanted:
                found += 1
        best[box], kinds[box] = row[found], found - skipped


@_inlined
def _sink(scores, heap, hole, size):  # type: ignore[no-untyped-def]
    """Sift the box at the position `hole` of a binary heap down, below all better boxes.

    `heap` holds numbers of boxes, `size` of them; a higher score is better, and of equal scores the lower number.
    """
    box = heap[hole]
    score = scores[box]
    child = 2 * hole + 1
    while child < size:
        other = heap[child]
        if child + 1 < size:
            second = heap[child + 1]
            if (scores[second] > scores[other]) | ((scores[second] == scores[other]) & (second < other)):
                child, other = child + 1, second
        if (scores[other] < score) | ((scores[other] == score) & (box < other)):
            break
        heap[hole] = other
        hole, child = child, 2 * child + 1
    heap[hole] = box


@kernel("void(f4[:,::1], f4[::1], f4, f4, i8[::1], i8[::1], i8, i8[::1], i8)")
def PICK(  # type: ignore[no-untyped-def]
    corners, scores, threshold, most_overlap, heap, found, most, place, again
):
    """Choose boxes by descending score, skipping those that overlap a chosen one; do a bounded part of the work in each call.

    Args:
        corners: top, left, bottom, right and area of each box.
        scores: a score for each box.
        threshold: boxes of lower scores are dropped.
        most_overlap: a box whose intersection over union with a chosen one is larger is dropped.
        heap: scratch, one number for each box.
        found: receives the numbers of the chosen boxes.
        most: the most boxes to choose.
        place: receives the number of boxes that are left, and that of the chosen ones. The work is done when the first is 0;
            otherwise the function is to be called again, with the same arguments.
        again: whether this call goes on where the last one stopped.
    """
    left = _COMPARISONS
    size, chosen = place[0], place[1]
    if not again:
        size, chosen = 0, 0
        for box in range(scores.size):
            heap[size] = box
            size += scores[box] >= threshold
        for hole in range(size // 2 - 1, -1, -1):
            _sink(scores, heap, hole, size)
        left -= 4 * scores.size
    while chosen < most and size > 0 and left > 0:
        box = heap[0]
        size -= 1
        heap[0] = heap[size]
        _sink(scores, heap, 0, size)
        kept, other = True, 0
        while kept and other < chosen:
            kept = not intersection_over_union(corners, box, found[other]) > most_overlap
            other += 1
        left -= 16 + other
        if kept:
            found[chosen] = box
            chosen += 1
    place[0], place[1] = size if chosen < most else 0, chosen
