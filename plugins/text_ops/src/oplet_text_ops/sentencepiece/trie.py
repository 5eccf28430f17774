"""The double-array trie of a sentencepiece model as padded arrays, so that a step needs no bounds checks.

Format: include/darts.h of s-yata/darts-clone, and double_array_trie.h of tensorflow/text.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from oplet import charge, checkpoint, ensure

__all__ = ["SPACE", "PieceTrie", "together"]

Nodes = NDArray[np.int32]

#: What stands for a space: U+2581, in UTF-8.
SPACE = b"\xe2\x96\x81"
#: Bytes of a key; those of real models have less than a hundred.
_LONGEST = 1024
#: A mask of the steps between two looks at the clock.
_OFTEN = 0xFFFF


class PieceTrie:
    """A trie of keys with values, stored as three arrays with an element per node.

    The child of a node by a byte is `base[node] ^ byte`, if the `label` there is the byte; `value` is the value of the key that
    ends at a node, or -1. The arrays are padded with nodes without a valid label, so that every step stays within them.

    Args:
        units: the double array, of uint32.
        values: the limit of values: keys with this value or a higher one are ignored; None for no limit.

    Raises:
        EnsureError: the units form a cycle.
    """

    def __init__(self, units: NDArray[np.uint32], values: int | None = None) -> None:
        count = len(units)
        charge(40 * count)
        outside = (count + 511) // 512 * 512  # so aligned that no byte, nor the 256 between texts, leads into another block
        size = outside + 512
        found = units.astype(np.int64)
        base = np.arange(count) ^ (found >> 10 << ((found & 0x200) >> 6))
        inside = base < count
        leaf = np.zeros(count, np.int64)
        leaf[inside] = found[base[inside]] & 0x7FFFFFFF
        known = inside & (found & 0x100 != 0)
        if values is not None:
            known &= leaf < values
        self.base = _filled(np.where(inside, base, outside), size, outside)
        self.label = _filled(np.where(found & 0x80000000, -1, found & 0xFF), size, -1)
        self.value = _filled(np.where(known, leaf, -1), size, -1)
        #: The same for loops in Python, which read them faster.
        self.bases, self.labels, self.values = (array("i", each.tobytes()) for each in (self.base, self.label, self.value))
        self.empty = count == 0
        # A node's children are the units that lie at its base, but for the label. Ordered by that, they stand together.
        keys = np.where(self.label >= 0, np.arange(size) ^ self.label, -1)
        self._order = np.argsort(keys, kind="stable").astype(np.int32)
        self._keys = keys[self._order]
        self._most = max(64 * count, 1 << 16)
        self._steps = 0  # of `prefixes`, of all texts: keys may be thousands of bytes long
        self._check()

    def prefixes(self, text: bytes, start: int) -> Iterator[tuple[int, int]]:
        """Yield (value, end) of each key that matches `text` at `start`, shortest first."""
        bases, labels, values, node = self.bases, self.labels, self.values, 0
        if self.empty:
            return
        for end in range(start, len(text)):
            byte = text[end]
            node = bases[node] ^ byte
            if labels[node] != byte:
                return
            self._steps += 1
            if not self._steps & _OFTEN:
                checkpoint()
            if values[node] >= 0:
                yield values[node], end + 1

    def matches(self, text: Nodes, at: Nodes) -> Iterator[tuple[int, Nodes, Nodes]]:
        """Match keys at many positions at once: yield key length, indices of the matching positions, and values.

        Args:
            text: the bytes of all texts, as numbers, with the terminator 256 after each text.
            at: the positions in `text` at which keys may begin.
        """
        numbers, node, length = np.arange(len(at), dtype=np.int32), np.zeros(1, np.int32), 0
        while len(at) and not self.empty:
            checkpoint()
            byte = text[at]
            node = self.base[node] ^ byte
            on = np.flatnonzero(self.label[node] == byte)
            at, node, numbers = at[on] + 1, node[on], numbers[on]
            length += 1
            value = self.value[node]
            here = np.flatnonzero(value >= 0)
            if len(here):
                yield length, numbers[here], value[here]

    def children(self, nodes: Nodes) -> Nodes:
        """Return all children of the nodes, each once."""
        base = self.base[nodes]
        first, last = np.searchsorted(self._keys, base, "left"), np.searchsorted(self._keys, base, "right")
        counts = last - first
        places = np.arange(counts.sum()) + np.repeat(first - np.cumsum(counts) + counts, counts)
        return np.unique(self._order[places])

    def child(self, nodes: Nodes, byte: int) -> Nodes:
        """Return the nodes' children by one byte."""
        found = self.base[nodes] ^ byte
        children: Nodes = found[self.label[found] == byte]
        return children

    def levels(self, nodes: Nodes, labels: tuple[int, int] = (0, 255)) -> Iterator[Nodes]:
        """Yield the nodes, their children, the children's children and so on, along bytes from `labels[0]` to `labels[1]`."""
        total = 0
        for _ in range(_LONGEST):
            if not len(nodes):
                return
            yield nodes
            total += len(nodes)
            if total > self._most:
                break
            nodes = self.children(nodes)
            nodes = nodes[(self.label[nodes] >= labels[0]) & (self.label[nodes] <= labels[1])]
        ensure(False, "a trie of its sentencepiece model goes in a circle; convert the model again.")

    def has_key_of(self, first: int, last: int) -> bool:
        """Return whether some key consists only of bytes from `first` to `last`."""
        return any((self.value[nodes] >= 0).any() for nodes in self.levels(self._root(), (first, last)))

    def has_key_with(self, byte: int) -> bool:
        """Return whether some key contains this byte."""
        return any(len(self.child(nodes, byte)) for nodes in self.levels(self._root()))

    def parts_at_spaces(self) -> bool:
        """Return whether texts can be split before each run of spaces, as spaces occur in keys only at the beginning."""
        runs, behind = self._root(), []
        for _ in range(_LONGEST):
            if not len(runs):
                break
            for byte in SPACE:  # what leaves a run, be it within a space
                others = self.children(runs)
                behind.append(others[self.label[others] != byte])
                runs = self.child(runs, byte)
                if byte != SPACE[-1] and ((self.value[runs] >= 0).any() or len(self.child(runs, SPACE[0]))):
                    return False
        begun = np.unique(np.concatenate(behind)) if behind else np.empty(0, np.int32)
        for nodes in self.levels(begun):
            for byte in SPACE:
                nodes = self.child(nodes, byte)
                if (self.value[nodes] >= 0).any():
                    return False
            if len(nodes):
                return False
        return True

    def _root(self) -> Nodes:
        return np.zeros(0 if self.empty else 1, np.int32)

    def _check(self) -> None:
        for _ in self.levels(self._root()):
            pass


def together(words: Sequence[bytes], lengths: NDArray[np.int64]) -> tuple[Nodes, NDArray[np.int64]]:
    """Concatenate words, each followed by the terminator 256; return the bytes as numbers, and each word's start."""
    text = np.frombuffer(b"\0".join(words) + b"\0", np.uint8).astype(np.int32)
    ends = np.cumsum(lengths + 1)
    text[ends - 1] = 256
    return text, ends - lengths - 1


def _filled(values: NDArray[np.int64], size: int, rest: int) -> Nodes:
    array = np.full(size, rest, np.int32)
    array[: len(values)] = values
    return array
