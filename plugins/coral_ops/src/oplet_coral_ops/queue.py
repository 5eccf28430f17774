"""A queue that gives the highest score first, and of equal scores the one that C++'s `std::priority_queue` gives.

Scores of quantized models are often equal, and which one comes first decides from where a pose is followed.
"""

from __future__ import annotations

from typing import Generic, TypeVar

__all__ = ["ScoreQueue"]

Item = TypeVar("Item")


class ScoreQueue(Generic[Item]):
    """A priority queue that returns items of equal score in the order of libstdc++'s `push_heap` and `pop_heap`.

    >>> queue = ScoreQueue[str]()
    >>> for score, item in ((1.0, "a"), (1.0, "b"), (1.0, "c"), (0.0, "d")):
    ...     queue.push(score, item)
    >>> [queue.pop() for _ in range(4)]
    [(1.0, 'a'), (1.0, 'c'), (1.0, 'b'), (0.0, 'd')]
    """

    def __init__(self) -> None:
        self._heap: list[tuple[float, Item]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, score: float, item: Item) -> None:
        """Add an item with its score."""
        self._heap.append((score, item))
        self._rise(len(self._heap) - 1, (score, item))

    def pop(self) -> tuple[float, Item]:
        """Remove and return the item of the highest score, as (score, item)."""
        heap = self._heap
        top, last = heap[0], heap.pop()
        length = len(heap)
        if not length:
            return top
        hole = child = 0
        while child < (length - 1) // 2:
            child = 2 * child + 2
            if heap[child][0] < heap[child - 1][0]:
                child -= 1
            heap[hole] = heap[child]
            hole = child
        if length % 2 == 0 and child == (length - 2) // 2:
            child = 2 * child + 1
            heap[hole] = heap[child]
            hole = child
        self._rise(hole, last)
        return top

    def _rise(self, hole: int, entry: tuple[float, Item]) -> None:
        """Put an entry into a hole, or above it as far as those there have lower scores."""
        heap = self._heap
        while hole > 0:
            parent = (hole - 1) // 2
            if not heap[parent][0] < entry[0]:
                break
            heap[hole] = heap[parent]
            hole = parent
        heap[hole] = entry
