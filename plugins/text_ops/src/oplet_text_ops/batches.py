"""Processing of many strings in batches, so that scratch memory stays bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from oplet import charge, checkpoint
from oplet.kernels.strings import StringMeter, make_strings

__all__ = ["each_text", "parts"]

#: Bytes of text that are worked on at once, unless a single string is longer.
_AT_ONCE = 1 << 20


def parts(texts: Sequence[bytes], scratch: int, at_once: int = _AT_ONCE) -> Iterator[Sequence[bytes]]:
    """Yield the strings in batches of about `at_once` bytes (a megabyte).

    Before each batch, `scratch` bytes per byte of text are charged against the memory limit.
    """
    ends = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)) + 1)
    first, before = 0, 0
    while first < len(texts):
        last = max(first + 1, int(np.searchsorted(ends, before + at_once, side="right")))
        checkpoint()
        charge(scratch * (int(ends[last - 1]) - before))
        yield texts[first:last]
        first, before = last, int(ends[last - 1])


def each_text(change: Callable[[bytes, StringMeter], bytes], texts: Sequence[bytes]) -> list[bytes]:
    """Apply `change` to each string; return the results.

    The memory of results as long as their strings is charged beforehand; `change` charges what it adds, by the meter it is given.
    """
    meter = StringMeter()
    return make_strings(lambda text: change(text, meter), texts, len, meter=meter)
