"""A priority queue that gives out entries of equal priority in the order in which the C++ library's does.

Python's heapq keeps another order among equals, and an op whose answer depends on it (non-maximum suppression of boxes
with the same score) must have this one: entries move as in libstdc++'s push_heap and pop_heap.

Entries below a floor are only counted. They never get above another entry, so that where they are among themselves changes
nothing for the others: a place that is empty here is one of theirs.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

__all__ = ["PriorityQueue"]

#: A tuple that begins with its priority.
Entry = TypeVar("Entry", bound="tuple[Any, ...]")


class PriorityQueue(Generic[Entry]):
    """The entries from a floor on, the one of highest priority first out.

    Attributes:
        count: of all entries that are in the queue, those below the floor included.
    """

    def __init__(self) -> None:
        self.count = 0
        self._heap: dict[int, Entry] = {}

    def __bool__(self) -> bool:
        """Whether there are entries that are not below the floor."""
        return bool(self._heap)

    def append(self, entry: Entry) -> None:
        """Put an entry in."""
        self._rise(self.count, entry)
        self.count += 1

    def pop(self) -> Entry:
        """Take the entry of highest priority out."""
        heap = self._heap
        top = heap[0]
        self.count -= 1
        last = heap.pop(self.count, None)
        if self.count:
            hole = self._sink()
            if last is None:
                del heap[hole]
            else:
                self._rise(hole, last)
        return top

    def _rise(self, hole: int, entry: Entry) -> None:
        """Move the hole up to where the entry belongs, and put it in."""
        heap, priority = self._heap, entry[0]
        while hole:
            parent = (hole - 1) >> 1
            above = heap.get(parent)
            if above is not None:
                if not above[0] < priority:
                    break
                heap[hole] = above
            hole = parent
        heap[hole] = entry

    def _sink(self) -> int:
        """Move the hole at the top down, always to the larger child, the second of equals."""
        heap, hole = self._heap, 0
        while True:
            child = 2 * hole + 2
            second, first = heap.get(child), heap.get(child - 1)
            if second is None or (first is not None and second[0] < first[0]):
                second, child = first, child - 1
            if second is None:
                return hole
            heap[hole] = second
            hole = child
