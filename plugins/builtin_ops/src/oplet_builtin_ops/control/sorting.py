"""Sorting along an axis by an arbitrary comparator subgraph: a merge sort that compares for all rows at once.

Sorted runs are merged pairwise. The position of a value of the left run is its own plus the number of values of the right run that
must come before it; that of a value of the right run is its own plus the number of values of the left run that need not come after
it. Both counts are found by binary search, so that each round of comparisons is one call for all values of the tensor. The sort is
stable.
"""

from __future__ import annotations

import numpy as np

from oplet.kernels.arrays import Array
from oplet_builtin_ops.control.bodies import Body

__all__ = ["sorted_order"]


def sorted_order(body: Body, tensors: list[Array]) -> Array:
    """Return the argsort of rows by a comparator body, shape (rows, length).

    Args:
        body: the comparator; its inputs are two values of each tensor, (a0, b0, a1, b1, ...), and it returns whether the first
            ones come before the second ones.
        tensors: of shape (rows, length).
    """
    rows, length = tensors[0].shape
    order: Array = np.broadcast_to(np.arange(length), (rows, length))
    if length < 2 or not rows:
        return order
    body.start()
    if body.lanes == 1:
        return np.stack([_sorted_row(body, [tensor[row] for tensor in tensors]) for row in range(rows)])
    row = np.arange(rows)[:, None]

    def comes_before(first: Array, second: Array) -> Array:
        """Return whether values at the positions `first` sort before those at `second`; both have shape (rows, n)."""
        pairs = []
        for tensor in tensors:
            pairs += [tensor[row, order[row, first]].reshape(-1), tensor[row, order[row, second]].reshape(-1)]
        answer: Array = body(*pairs)[0].reshape(first.shape).copy()
        return answer

    place = np.arange(length)
    width = 1
    while width < length:
        start = place // (2 * width) * (2 * width)
        middle = np.minimum(start + width, length)
        is_left = place < middle
        first, stop = np.where(is_left, middle, start), np.where(is_left, np.minimum(start + 2 * width, length), middle)
        low, high = (np.broadcast_to(side, (rows, length)).copy() for side in (first, stop))
        mine = np.broadcast_to(place, (rows, length))
        for _ in range(width.bit_length()):
            between = (low + high) // 2
            other = np.minimum(between, length - 1)
            # For a left value: must the other come before it? For a right one: need the other not come after it?
            answer = comes_before(np.where(is_left, other, mine), np.where(is_left, mine, other))
            forward = (answer == is_left) & (low < high)
            low, high = np.where(forward, between + 1, low), np.where(forward, high, between)
        target = np.where(is_left, place, place - middle + start) + low - first
        merged = order.copy()  # with an inconsistent comparator some positions are not written
        merged[row, target] = order
        order = merged
        width *= 2
    return order


def _sorted_row(body: Body, values: list[Array]) -> Array:
    """Argsort a single row, one comparison at a time."""

    class Key:
        def __init__(self, place: int) -> None:
            self.pair = [value[place : place + 1] for value in values]

        def __lt__(self, other: Key) -> bool:
            return bool(body(*(one for pair in zip(self.pair, other.pair) for one in pair))[0][0])

    return np.array(sorted(range(len(values[0])), key=Key), np.intp)
