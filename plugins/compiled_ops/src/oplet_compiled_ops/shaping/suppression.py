"""Non-maximum suppression: of overlapping boxes, the one with the highest score is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oplet_compiled_ops.library.kernels import kernel
from oplet_compiled_ops.library.lazy import inlined

__all__ = ["PLACE_WORDS", "SUPPRESS", "intersection_over_union"]

#: The words in which a call stores where it stopped, for the next call.
PLACE_WORDS = 4
#: About the comparisons of a call; the cost of taking a box out of the queue, in comparisons.
_COMPARISONS, _TAKEN = 1 << 21, 64

_ZERO = np.float32(0)
_inlined: Callable[..., Any] = inlined(error_model="numpy")


@_inlined
def _rise(priorities, entries, hole, priority, box, begin):  # type: ignore[no-untyped-def]
    """Insert an entry into a binary heap, highest priority first: sift it up from the free position `hole`, as C++'s push_heap
    does.

    The entry has a priority, the number of a box, and with how many of the chosen boxes that was compared (`begin`).
    """
    while hole > 0:
        parent = (hole - 1) >> 1
        if not priorities[parent] < priority:
            break
        priorities[hole] = priorities[parent]
        entries[hole, 0], entries[hole, 1] = entries[parent, 0], entries[parent, 1]
        hole = parent
    priorities[hole] = priority
    entries[hole, 0], entries[hole, 1] = box, begin


@_inlined
def _sink(priorities, entries, size):  # type: ignore[no-untyped-def]
    """Move the hole at the root of a binary heap of `size` entries down to a leaf, as C++'s pop_heap does; return its position.

    Each time the child of the higher priority moves up, the second of equal ones.
    """
    hole, child = 0, 2
    while child <= size:
        if child == size or priorities[child] < priorities[child - 1]:
            child -= 1
        priorities[hole] = priorities[child]
        entries[hole, 0], entries[hole, 1] = entries[child, 0], entries[child, 1]
        hole, child = child, 2 * child + 2
    return hole


@_inlined
def intersection_over_union(edges, a, b):  # type: ignore[no-untyped-def]
    """Compute the intersection over union of the boxes `a` and `b`; 0 if one has no area.

    `edges` has top, left, bottom, right and area of each box.
    """
    if (edges[a, 4] <= _ZERO) | (edges[b, 4] <= _ZERO):
        return _ZERO
    height = max(min(edges[a, 2], edges[b, 2]) - max(edges[a, 0], edges[b, 0]), _ZERO)
    width = max(min(edges[a, 3], edges[b, 3]) - max(edges[a, 1], edges[b, 1]), _ZERO)
    common = height * width
    return common / (edges[a, 4] + edges[b, 4] - common)


@kernel("void(f4[:,::1], f4[::1], f4[:,::1], f4[::1], i8[:,::1], f4, f4, f4, i4[::1], f4[::1], i4[::1], i8[::1], i8)")
def SUPPRESS(  # type: ignore[no-untyped-def]
    boxes, scores, edges, priorities, entries, most_overlap, threshold, scale, found, kept, number, place, again
):
    """Choose at most as many boxes as `found` has room for, by descending score; equal scores in the order of C++'s
    std::priority_queue.

    A call does a bounded part of the work.

    Args:
        boxes: two opposite corners each (y, x, y, x), in any order.
        scores: a score for each box.
        edges: scratch: top, left, bottom, right and area of each box.
        priorities: scratch, one for each box.
        entries: scratch: the boxes in the queue, and with how many of the chosen boxes each was compared.
        most_overlap: a box whose intersection over union with a chosen one is as large or larger is dropped.
        threshold: boxes whose score is not above it are dropped.
        scale: each chosen box reduces the score of a later one by the factor exp(scale * overlap ** 2) (soft suppression); 0 for
            no reduction.
        found: receives the numbers of the chosen boxes; zeros after them.
        kept: receives the scores of the chosen boxes.
        number: receives how many boxes were chosen; -1 if the work is not done, and the function is to be called again.
        place: four words in which a call stores where it stopped.
        again: whether this call goes on where the last one stopped.
    """
    left = _COMPARISONS
    seen, size, chosen, limit = 0, 0, 0, 0
    if again:
        seen, size, chosen, limit = place[0], place[1], place[2], place[3]
    stop = min(scores.size, seen + left // 8)
    for box in range(seen, stop):
        if scores[box] > threshold:
            corners = boxes[box]
            edges[box, 0], edges[box, 2] = min(corners[0], corners[2]), max(corners[0], corners[2])
            edges[box, 1], edges[box, 3] = min(corners[1], corners[3]), max(corners[1], corners[3])
            edges[box, 4] = (edges[box, 2] - edges[box, 0]) * (edges[box, 3] - edges[box, 1])
            _rise(priorities, entries, size, scores[box], box, 0)
            size += 1
    if stop < scores.size:
        place[0], place[1] = stop, size
        place[2], place[3], number[0] = 0, 0, -1
        return
    if seen < stop or not again:
        limit = min(size, found.size)
    while chosen < limit and size > 0:
        if left < 0:
            place[0], place[1] = stop, size
            place[2], place[3], number[0] = chosen, limit, -1
            return
        left -= _TAKEN + chosen - entries[0, 1]
        before, box, begin = priorities[0], entries[0, 0], entries[0, 1]
        size -= 1
        if size > 0:
            last, last_box, last_begin = priorities[size], entries[size, 0], entries[size, 1]
            _rise(priorities, entries, _sink(priorities, entries, size), last, last_box, last_begin)
        score, compared, dropped = before, chosen, False
        for other in range(chosen - 1, begin - 1, -1):
            overlap = intersection_over_union(edges, box, found[other])
            dropped = overlap >= most_overlap
            if dropped:
                break
            if scale != _ZERO:
                score = score * np.exp(scale * overlap * overlap)
                if score <= threshold:
                    break
        if dropped:
            continue
        if score == before:
            found[chosen], kept[chosen] = box, score
            chosen += 1
        if score > threshold:
            _rise(priorities, entries, size, score, box, compared)
            size += 1
    number[0] = chosen
    for rest in range(chosen, found.size):
        found[rest], kept[rest] = 0, _ZERO
