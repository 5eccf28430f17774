"""Tries in Darts-clone's format: a double array of 32-bit units.

A unit holds a label in its lowest byte and an offset to its children; a child stands at its parent's place, exclusive-or the parent's
offset, exclusive-or the child's label. A unit with a value has a child of label 0, a leaf, which has its highest bit set and the
value in the other 31. Format: include/darts.h of s-yata/darts-clone, and double_array_trie.h of tensorflow/text.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from oplet import charge

__all__ = ["DoubleArray"]


class DoubleArray:
    """A trie that is walked byte by byte; listing a large one takes seconds.

    Nodes are numbers, the root is 0. A step that leads outside of the array finds no child, so that no array of units is refused.

    Args:
        units: the double array, of uint32.

    Attributes:
        units: the same as a list, for loops that walk by themselves.
    """

    def __init__(self, units: NDArray[np.uint32]) -> None:
        charge(36 * len(units))
        self.units: list[int] = units.tolist()

    def step(self, node: int, byte: int) -> int:
        """The child under a byte from 1 to 255; -1 where there is none."""
        units = self.units
        if not 0 <= node < len(units):
            return -1
        unit = units[node]
        child = node ^ (unit >> 10 << ((unit & 0x200) >> 6)) ^ byte
        return child if child < len(units) and units[child] & 0x800000FF == byte else -1

    def walk(self, node: int, key: bytes) -> int:
        """The node behind all bytes of the key; -1 where there is none."""
        for byte in key:
            node = self.step(node, byte)
            if node < 0:
                break
        return node

    def value(self, node: int) -> int:
        """The value of a node, from 0 to 2**31 - 1; -1 where it has none."""
        units = self.units
        if not 0 <= node < len(units):
            return -1
        unit = units[node]
        leaf = node ^ (unit >> 10 << ((unit & 0x200) >> 6))
        return units[leaf] & 0x7FFFFFFF if unit & 0x100 and leaf < len(units) else -1

    def before(self, key: bytes) -> NDArray[np.int64]:
        """The nodes from which all bytes of the key can be walked, reachable or not."""
        units = np.asarray(self.units, np.int64)
        starts = nodes = np.arange(len(units))
        for byte in key:
            unit = units[nodes]
            children = nodes ^ (unit >> 10 << ((unit & 0x200) >> 6)) ^ byte
            inside = children < len(units)
            there = inside & (units[np.where(inside, children, 0)] & 0x800000FF == byte)
            starts, nodes = starts[there], children[there]
        return starts

    def prefixes(self, text: bytes, start: int = 0, node: int = 0) -> Iterator[tuple[int, int]]:
        """(value, end) of each key that the text has from `start` on, the shortest first."""
        for end in range(start, len(text)):
            node = self.step(node, text[end])
            if node < 0:
                return
            value = self.value(node)
            if value >= 0:
                yield value, end + 1
