"""Work on large texts in slices: a call of C that goes over all of them would keep every other thread from Python meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import orjson
from numpy.typing import NDArray

__all__ = ["ELEMENTS", "SLICE", "SMALL", "SMALL_FIRST", "cut", "dumped", "occurrences", "portions", "slice_starts", "without"]

#: Bytes of a request or response that is read or written at once, where it comes: the objects of so few are no burden.
SMALL = 1 << 16
#: Bytes of a text, and elements, that are gone through without a stop: less than a millisecond's work.
SLICE, ELEMENTS = 1 << 17, 1 << 13
#: Seconds that a slice of large work waits for small requests: four times what it takes, so that a fifth of the time is its own.
_GIVING_WAY = 0.004


class _SmallFirst:
    """Small requests under way, for which threads with large work stop between two slices: Python runs one thread at a time.

    Used by one thread, the event loop's, as a context of each small request; `count` are under way.
    """

    def __init__(self) -> None:
        self.count, self._thread = 0, 0
        self._none = threading.Event()
        self._none.set()

    def __enter__(self) -> None:
        self.count, self._thread = self.count + 1, threading.get_ident()
        self._none.clear()

    def __exit__(self, *raised: object) -> None:
        self.count -= 1
        if not self.count:
            self._none.set()

    def give_way(self) -> None:
        """Wait until no small request is under way, but not for long."""
        if threading.get_ident() != self._thread:
            self._none.wait(_GIVING_WAY)


SMALL_FIRST = _SmallFirst()


def slice_starts(end: int, step: int, start: int = 0) -> Iterator[int]:
    """Yield where slices begin; small requests go first between two of them."""
    for place in range(start, end, step):
        SMALL_FIRST.give_way()
        yield place


def occurrences(text: bytes, signs: bytes) -> int:
    """Count the bytes of a text that are among `signs`, in pieces so that other threads can run."""
    each = [bytes([sign]) for sign in signs]
    return sum(text.count(sign, start, start + SLICE) for start in slice_starts(len(text), SLICE) for sign in each)


def without(text: bytes, letters: bytes) -> bytes:
    """Return a text without all bytes that are among `letters`."""
    return b"".join([text[start : start + SLICE].translate(None, letters) for start in slice_starts(len(text), SLICE)])


def cut(text: bytes, start: int, end: int) -> bytes:
    """Return the bytes `start` to `end` (excluded) of a text."""
    if end - start <= SLICE:
        return text[start:end]
    return b"".join([text[place : min(place + SLICE, end)] for place in slice_starts(end, SLICE, start)])


def portions(elements: Any) -> Iterator[Any]:
    """Yield slices of a sequence or an array that cover it, in order."""
    for start in slice_starts(len(elements), ELEMENTS):
        yield elements[start : start + ELEMENTS]


def dumped(elements: Sequence[Any] | NDArray[Any]) -> bytes:
    """Serialize a list or array as JSON."""
    return b"[" + b",".join([orjson.dumps(each, option=orjson.OPT_SERIALIZE_NUMPY)[1:-1] for each in portions(elements)]) + b"]"
