"""Work on large texts in slices: a call of C that goes over all of them would keep every other thread from Python meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import orjson
from numpy.typing import NDArray

__all__ = ["ELEMENTS", "SLICE", "SMALL", "cut", "dumped", "occurrences", "portions", "without"]

#: Bytes of a request or response that is read or written at once, where it comes: the objects of so few are no burden.
SMALL = 1 << 16
#: Bytes of a text, and elements, that are gone through without a stop: less than a millisecond's work.
SLICE, ELEMENTS = 1 << 17, 1 << 13


def occurrences(text: bytes, signs: bytes) -> int:
    """Count the bytes of a text that are among `signs`, in pieces so that other threads can run."""
    each = [bytes([sign]) for sign in signs]
    return sum(text.count(sign, start, start + SLICE) for start in range(0, len(text), SLICE) for sign in each)


def without(text: bytes, letters: bytes) -> bytes:
    """Return a text without all bytes that are among `letters`."""
    return b"".join([text[start : start + SLICE].translate(None, letters) for start in range(0, len(text), SLICE)])


def cut(text: bytes, start: int, end: int) -> bytes:
    """Return the bytes `start` to `end` (excluded) of a text."""
    if end - start <= SLICE:
        return text[start:end]
    return b"".join([text[place : min(place + SLICE, end)] for place in range(start, end, SLICE)])


def portions(elements: Any) -> Iterator[Any]:
    """Yield slices of a sequence or an array that cover it, in order."""
    for start in range(0, len(elements), ELEMENTS):
        yield elements[start : start + ELEMENTS]


def dumped(elements: Sequence[Any] | NDArray[Any]) -> bytes:
    """Serialize a list or array as JSON."""
    return b"[" + b",".join([orjson.dumps(each, option=orjson.OPT_SERIALIZE_NUMPY)[1:-1] for each in portions(elements)]) + b"]"
