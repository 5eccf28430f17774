"""Non-maximum suppression: of boxes that overlap, the one with the highest score stays."""

from __future__ import annotations

import numpy as np

from oplet_numba_ops.kernels import kernel

__all__ = ["SUPPRESS"]

_ZERO = np.float32(0)


@kernel("void(f4[:,::1], i8[::1], b1[::1], f4[:,::1], f4, i8, i8[::1])")
def SUPPRESS(boxes, order, suppressed, corners, most_overlap, limit, found):  # type: ignore[no-untyped-def]
    """Choose up to `limit` boxes.

    Args:
        boxes: given by any two opposite corners (y, x, y, x).
        order: the numbers of the boxes, by descending score, all different.
        suppressed: scratch, one for each of them.
        corners: scratch: for each of them top, left, bottom, right and area, five rows.
        found: the numbers of those chosen; the last element is how many they are.
    """
    count = order.size
    top, left, bottom, right, area = corners[0], corners[1], corners[2], corners[3], corners[4]
    for k in range(count):
        box = boxes[order[k]]
        top[k], bottom[k] = min(box[0], box[2]), max(box[0], box[2])
        left[k], right[k] = min(box[1], box[3]), max(box[1], box[3])
        area[k] = (bottom[k] - top[k]) * (right[k] - left[k])
        suppressed[k] = False
    chosen = 0
    for k in range(count):
        if chosen == limit:
            break
        if suppressed[k]:
            continue
        found[chosen] = order[k]
        chosen += 1
        for other in range(k, count):
            height = max(min(bottom[other], bottom[k]) - max(top[other], top[k]), _ZERO)
            width = max(min(right[other], right[k]) - max(left[other], left[k]), _ZERO)
            common = height * width
            share = common / (area[other] + area[k] - common)
            share = _ZERO if (area[other] <= _ZERO) | (area[k] <= _ZERO) else share
            suppressed[other] = suppressed[other] | (share >= most_overlap)
        # LiteRT puts a chosen box back, to be suppressed by itself: one without an area is chosen again and again.
        while not suppressed[k] and chosen < limit:
            found[chosen] = order[k]
            chosen += 1
    found[found.size - 1] = chosen
