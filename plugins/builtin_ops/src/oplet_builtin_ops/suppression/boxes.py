"""Greedy selection of boxes in a given order, skipping those that overlap a selected one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet import checkpoint

__all__ = ["Boxes", "choose_in_order"]

Floats = NDArray[np.float32]

_ZERO = np.zeros(1, np.float32)

#: Boxes are compared block by block, so that most suppressed boxes are never compared with each other: the boxes of the first
#: block, and the most pairs of a block's boxes with selected ones.
_FIRST_BLOCK, _PAIRS = 64, 1 << 12
#: The selected boxes that a block is compared with at a time.
_CHOSEN = 1 << 12


class Boxes:
    """Boxes given by any two opposite corners (y, x, y, x).

    Attributes:
        edges: the upper and left edges, negated, and the lower and right ones: the minimum of each for two boxes gives their
            intersection. Each is an array of its own, which numpy reads much faster than columns.
        areas: the areas of the boxes.

    Args:
        flat: whether boxes of area 0 may occur.
    """

    def __init__(self, edges: Floats, areas: Floats, flat: bool) -> None:
        self.edges, self.areas, self._flat = edges, areas, flat

    @classmethod
    def at_corners(cls, corners: Floats) -> Boxes:
        columns = np.ascontiguousarray(corners.T)
        edges = np.empty_like(columns)
        np.negative(np.minimum(columns[:2], columns[2:]), edges[:2])
        np.maximum(columns[:2], columns[2:], out=edges[2:])
        areas = (edges[2] + edges[0]) * (edges[3] + edges[1])
        return cls(edges, areas, bool((areas <= 0).any()))

    def __getitem__(self, chosen: Any) -> Boxes:
        edges = self.edges[:, chosen] if isinstance(chosen, slice) else self.edges.take(chosen, 1)
        return Boxes(edges, self.areas[chosen], self._flat)

    def overlaps(self, others: Boxes) -> Floats:
        """Return the intersection over union of each box with each of `others`; 0 if one has no area."""
        sides = np.minimum(self.edges[:, :, None], others.edges[:, None, :])
        lengths = np.add(sides[2:], sides[:2], sides[2:])
        np.maximum(lengths, _ZERO, out=lengths)
        shares: Floats = np.multiply(lengths[0], lengths[1], lengths[0])
        together = np.add(self.areas[:, None], others.areas, lengths[1])
        together -= shares
        shares /= together
        if self._flat:
            shares[self.areas <= 0] = 0
            shares[:, others.areas <= 0] = 0
        return shares


def choose_in_order(
    boxes: Boxes, order: NDArray[np.intp], limit: int, too_much: Callable[[Floats], NDArray[np.bool_]], again: bool = False
) -> list[int]:
    """Select boxes greedily in `order` (non-maximum suppression); return their indices.

    Args:
        boxes: all boxes.
        order: indices of boxes, the best first.
        limit: the most boxes to select.
        too_much: returns a mask of the overlaps that are large enough to suppress the later box.
        again: whether a selected box remains a candidate, as in LiteRT; it is selected again, up to the limit, unless its overlap
            with itself suppresses it.
    """
    found: list[int] = []
    start, size = 0, _FIRST_BLOCK
    while len(found) < limit and start < len(order):
        checkpoint()
        block = order[start : start + size]
        start += size
        size = max(_FIRST_BLOCK, min(2 * size, _PAIRS // (len(found) + 1)))
        if found:
            for first in range(0, len(found), _CHOSEN):
                suppressed = too_much(boxes[found[first : first + _CHOSEN]].overlaps(boxes[block]))
                block = block[~suppressed.any(axis=0)]
                if first:
                    checkpoint()
        members = boxes[block]
        rows = np.packbits(too_much(members.overlaps(members)), axis=1, bitorder="little")
        left = (1 << len(block)) - 1  # one bit for each box that may still be selected
        while left and len(found) < limit:
            bit = left & -left
            number = bit.bit_length() - 1
            found.append(int(block[number]))
            left &= ~int.from_bytes(rows[number].tobytes(), "little")
            if left & bit:
                if again:
                    found += [found[-1]] * (limit - len(found))
                left ^= bit
    return found
