"""Work on many strings in parts, so that scratch memory stays within bounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oplet import charge, checkpoint

__all__ = ["parts"]

#: Bytes of text that are worked on at once, unless a single string is longer.
_AT_ONCE = 1 << 20


def parts(texts: Sequence[bytes], scratch: int) -> Iterator[Sequence[bytes]]:
    """The strings in parts of about a megabyte; charges `scratch` bytes for each of their bytes."""
    first, size = 0, 0
    for last, text in enumerate(texts):
        size += len(text) + 1
        if size >= _AT_ONCE:
            checkpoint()
            charge(scratch * size)
            yield texts[first : last + 1]
            first, size = last + 1, 0
    if first < len(texts):
        charge(scratch * size)
        yield texts[first:]
