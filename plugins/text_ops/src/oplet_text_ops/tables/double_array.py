"""Tries in Darts-clone's format: a double array of 32-bit units.

A unit holds a label in its lowest byte and an offset to its children; a child stands at its parent's place, exclusive-or the parent's
offset, exclusive-or the child's label. A unit with a value has a child of label 0, a leaf, which has its highest bit set and the
value in the other 31. Format: include/darts.h of s-yata/darts-clone, and double_array_trie.h of tensorflow/text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet import charge, checkpoint

__all__ = ["DoubleArray"]

#: Nodes of which it is asked whether the root leads to them, and nodes that lead to these.
_MOST_SUSPECTS, _MOST_ANCESTORS = 64, 512
#: A mask of the steps of a walk between two looks at the clock.
_OFTEN = 1023


class DoubleArray:
    """A double-array trie that is walked byte by byte.

    Nodes are numbers, the root is 0. A step that leads outside of the array finds no child, so that any array is valid.

    Args:
        units: the double array, of uint32.

    Attributes:
        array: the double array, of uint32.
    """

    def __init__(self, units: NDArray[np.uint32]) -> None:
        self.array = units.astype(np.uint32, copy=False)

    @cached_property
    def units(self) -> list[int]:
        """The double array as a Python list, for loops that walk it themselves."""
        charge(36 * len(self.array))
        found: list[int] = self.array.tolist()
        return found

    def step(self, node: int, byte: int) -> int:
        """Return a node's child by a byte from 1 to 255; -1 if there is none."""
        units = self.units
        if not 0 <= node < len(units):
            return -1
        unit = units[node]
        child = node ^ (unit >> 10 << ((unit & 0x200) >> 6)) ^ byte
        return child if child < len(units) and units[child] & 0x800000FF == byte else -1

    def walk(self, node: int, key: bytes) -> int:
        """Return the node reached by all bytes of the key; -1 if there is none."""
        for byte in key:
            node = self.step(node, byte)
            if node < 0:
                break
        return node

    def value(self, node: int) -> int:
        """Return a node's value, from 0 to 2**31 - 1; -1 if it has none."""
        units = self.units
        if not 0 <= node < len(units):
            return -1
        unit = units[node]
        leaf = node ^ (unit >> 10 << ((unit & 0x200) >> 6))
        return units[leaf] & 0x7FFFFFFF if unit & 0x100 and leaf < len(units) else -1

    def bases(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return each node's base: the child by a byte is base XOR byte."""
        units = self.array[nodes].astype(np.int64)
        found: NDArray[np.int64] = nodes ^ (units >> 10 << ((units & 0x200) >> 6))
        return found

    def steps(self, nodes: NDArray[np.int64], labels: NDArray[Any] | int) -> NDArray[np.int64]:
        """Return each node's child by its byte in `labels` (or one byte for all); -1 if there is none."""
        children = self.bases(nodes) ^ labels
        units = self.array[np.minimum(children, len(self.array) - 1)]
        there = (children < len(self.array)) & (units & 0x800000FF == labels)
        return np.where(there, children, -1)

    def values(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return each node's value; -1 if it has none."""
        leaves = self.bases(nodes)
        there = (self.array[nodes] & 0x100 != 0) & (leaves < len(self.array))
        values = (self.array[np.minimum(leaves, len(self.array) - 1)] & 0x7FFFFFFF).astype(np.int64)
        return np.where(there, values, -1)

    def has_before(self, keys: Sequence[bytes]) -> bool:
        """Return whether the bytes of one of the keys lead on from any node that is reachable from the root (itself included).

        The result is also True if the search would take too long.
        """
        everywhere = np.arange(len(self.array))
        bases = self.bases(everywhere)
        found: dict[bytes, tuple[NDArray[np.int64], NDArray[np.int64]]] = {b"": (everywhere, everywhere)}
        suspects: set[int] = set()
        for key in keys:
            for end in range(1, len(key) + 1):
                if key[:end] not in found:
                    starts, nodes = found[key[: end - 1]]
                    children = (bases if end == 1 else self.bases(nodes)) ^ key[end - 1]
                    inside = np.flatnonzero(children < len(self.array))
                    there = inside[self.array[children[inside]] & 0x800000FF == key[end - 1]]
                    found[key[:end]] = starts[there], children[there]
            suspects.update(found[key][0].tolist())
            if len(suspects) > _MOST_SUSPECTS:
                return True
        return self._any_reached(suspects, bases)

    def _any_reached(self, suspects: set[int], bases: NDArray[np.int64]) -> bool:
        """Return whether the root leads to one of the suspect nodes; `bases` are all nodes' bases."""
        seen, left = set(suspects), sorted(suspects)
        while left:
            node = left.pop()
            if not node or len(seen) > _MOST_ANCESTORS:
                return True
            unit = int(self.array[node])
            if unit & 0x80000000:
                continue
            parents = set(np.flatnonzero(bases == node ^ unit & 0xFF).tolist()) - seen
            seen |= parents
            left += parents
        return False

    def prefixes(self, text: bytes, start: int = 0, node: int = 0) -> Iterator[tuple[int, int]]:
        """Yield (value, end) of each key that matches `text` at `start`, shortest first, beginning at `node` (0 is the root)."""
        for end in range(start, len(text)):
            node = self.step(node, text[end])
            if node < 0:
                return
            if end - start & _OFTEN == _OFTEN:
                checkpoint()
            value = self.value(node)
            if value >= 0:
                yield value, end + 1
