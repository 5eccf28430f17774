"""Sorting along an axis by any comparator: a merge sort whose comparisons are made for all rows at once.

Sorted runs are merged pairwise. A value of the left run goes behind those of the right one that must come before it, a value of
the right run behind those of the left one that need not come after it: both counts are found by halving, so that each round of
comparisons asks about all values of the tensor together. Of equals, the earlier one stays first.
"""

from __future__ import annotations

import numpy as np

from oplet.kernels.arrays import Array
from oplet_builtin_ops.control.bodies import Body

__all__ = ["sorted_order"]


def sorted_order(body: Body, tensors: list[Array]) -> Array:
    """The places of the values of rows in sorted order, of shape (rows, length).

    Args:
        body: the comparator; it takes two values of each tensor, side by side, and says whether the first comes before the second.
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
        """Whether the values at places of the order so far come before others; both of shape (rows, n)."""
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
            # A left value asks whether the other must come before it, a right one whether the other need not come after it.
            answer = comes_before(np.where(is_left, other, mine), np.where(is_left, mine, other))
            forward = (answer == is_left) & (low < high)
            low, high = np.where(forward, between + 1, low), np.where(forward, high, between)
        target = np.where(is_left, place, place - middle + start) + low - first
        merged = order.copy()  # a comparator that contradicts itself leaves places out
        merged[row, target] = order
        order = merged
        width *= 2
    return order


def _sorted_row(body: Body, values: list[Array]) -> Array:
    """The order of one row, with one comparison after the other."""

    class Key:
        def __init__(self, place: int) -> None:
            self.pair = [value[place : place + 1] for value in values]

        def __lt__(self, other: Key) -> bool:
            return bool(body(*(one for pair in zip(self.pair, other.pair) for one in pair))[0][0])

    return np.array(sorted(range(len(values[0])), key=Key), np.intp)
