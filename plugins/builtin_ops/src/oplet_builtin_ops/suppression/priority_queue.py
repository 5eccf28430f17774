"""A priority queue that returns entries of equal priority in the order of C++'s std::priority_queue.

Python's heapq has another order of equal entries, and an op whose result depends on it (non-maximum suppression of boxes with the
same score) needs this one: entries move as in libstdc++'s push_heap and pop_heap.

Entries below a floor are only counted. They never move above another entry, so that their order has no effect on the others: a
position that is empty here has one of them.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

__all__ = ["PriorityQueue"]

#: A tuple that begins with its priority.
Entry = TypeVar("Entry", bound="tuple[Any, ...]")


class PriorityQueue(Generic[Entry]):
    """A binary heap in the order of C++'s std::priority_queue; entries of the lowest priorities may be just counted.

    Attributes:
        count: the number of all entries, with those that are just counted.
    """

    def __init__(self) -> None:
        self.count = 0
        self._heap: dict[int, Entry] = {}

    def __bool__(self) -> bool:
        """Return whether there are entries that are not below the floor."""
        return bool(self._heap)

    def append(self, entry: Entry) -> None:
        """Add an entry, a tuple that begins with its priority."""
        self._rise(self.count, entry)
        self.count += 1

    def pop(self) -> Entry:
        """Remove and return the entry of highest priority."""
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
        """Move the hole up to where the entry belongs, and put the entry in (heap push)."""
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
        """Move the hole at the root down to a leaf, each time to the larger child (the second if equal); return the leaf."""
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
