"""A priority queue that gives out entries of equal priority in the order in which the C++ library's does.

Python's heapq keeps another order among equals, and an op whose answer depends on it (non-maximum suppression of boxes
with the same score) must have this one: entries move as in libstdc++'s push_heap and pop_heap.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, TypeVar

__all__ = ["PriorityQueue"]

#: A tuple that begins with its priority.
Entry = TypeVar("Entry", bound="tuple[Any, ...]")


class PriorityQueue(Generic[Entry]):
    """Entries, the one of highest priority first out; named like a list's methods, as a sorted list is one too."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._heap: list[Entry] = []
        for entry in entries:
            self.append(entry)

    def __len__(self) -> int:
        return len(self._heap)

    def append(self, entry: Entry) -> None:
        """Put an entry in."""
        self._heap.append(entry)
        self._rise(len(self._heap) - 1, entry)

    def pop(self) -> Entry:
        """Take the entry of highest priority out."""
        heap = self._heap
        top, last = heap[0], heap.pop()
        if heap:
            self._rise(self._sink(), last)
        return top

    def _rise(self, hole: int, entry: Entry) -> None:
        """Move the hole up to where the entry belongs, and put it in."""
        heap, priority = self._heap, entry[0]
        while hole:
            parent = (hole - 1) >> 1
            if not heap[parent][0] < priority:
                break
            heap[hole] = heap[parent]
            hole = parent
        heap[hole] = entry

    def _sink(self) -> int:
        """Move the hole at the top down to the end, always to the larger child, the second of equals."""
        heap, hole = self._heap, 0
        size = len(heap)
        child = 2
        while child < size:
            if heap[child][0] < heap[child - 1][0]:
                child -= 1
            heap[hole] = heap[child]
            hole = child
            child = 2 * hole + 2
        if child == size:
            heap[hole] = heap[child - 1]
            hole = child - 1
        return hole
