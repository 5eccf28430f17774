"""Readers of the two encodings in bundles: Protocol Buffers' wire format, and the tables of a FlatBuffer. Every read is checked."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from oplet.errors import ModelError
from oplet.schema import protobuf

__all__ = ["Table", "fields"]

#: The largest number of fields in a message, of entries in a vector of tables, and of bytes in a string of a table.
_MOST_FIELDS, _MOST_TABLES, _LONGEST = 1 << 14, 256, 4096


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the fields of a Protocol Buffers message: number, and an unsigned integer for a varint or bytes for all else.

    Raises:
        ModelError: it is no message.
    """
    try:
        yield from protobuf.fields(data, _MOST_FIELDS)
    except ValueError as error:
        raise ModelError(f"The bundle's metadata is damaged: {error}.") from error


class Table:
    """A table of a FlatBuffer.

    Args:
        data: the FlatBuffer.
        at: where the table lies; None for the root.

    Raises:
        ModelError: there is no table.
    """

    def __init__(self, data: bytes, at: int | None = None) -> None:
        self._data = data
        self._at = self._number("I", 0) if at is None else at
        vtable = self._at - self._number("i", self._at)
        self._vtable, self._size = vtable, self._number("H", vtable)
        if self._size < 4 or vtable + self._size > len(data):
            raise _damaged(vtable)

    def number(self, field: int, kind: str, default: int = 0) -> int:
        """Return a field that is an integer of this kind (a letter of `struct`)."""
        place = self._place(field)
        return self._number(kind, place) if place else default

    def table(self, field: int) -> Table | None:
        """Return a field that is a table; None if it is absent."""
        place = self._place(field)
        return Table(self._data, place + self._number("I", place)) if place else None

    def tables(self, field: int) -> list[Table]:
        """Return a field that is a vector of tables, of which there are 256 at most; an empty list if it is absent."""
        found = self._vector(field, 4)
        if found is None:
            return []
        start, count = found
        if count > _MOST_TABLES:
            raise ModelError(f"The bundle's header lists {count} things in a row; {_MOST_TABLES} are read at most.")
        places = range(start, start + 4 * count, 4)
        return [Table(self._data, place + self._number("I", place)) for place in places]

    def text(self, field: int) -> str:
        """Return a field that is a string, of which the first 4096 bytes are read; "" if it is absent."""
        start, count = self._vector(field, 1) or (0, 0)
        return self._data[start : start + min(count, _LONGEST)].decode("utf-8", "replace")

    def _vector(self, field: int, size: int) -> tuple[int, int] | None:
        place = self._place(field)
        if not place:
            return None
        start = place + self._number("I", place)
        count = self._number("I", start)
        if start + 4 + count * size > len(self._data):
            raise _damaged(start)
        return start + 4, count

    def _place(self, field: int) -> int:
        at = 4 + 2 * field
        offset = self._number("H", self._vtable + at) if at + 2 <= self._size else 0
        return self._at + offset if offset else 0

    def _number(self, kind: str, at: int) -> int:
        try:
            if at < 0:
                raise _damaged(at)
            found: int = struct.unpack_from(f"<{kind}", self._data, at)[0]
        except struct.error as error:
            raise _damaged(at) from error
        return found


def _damaged(at: int) -> ModelError:
    return ModelError(f"The bundle's header is damaged: what should be at byte {at} of it leads outside.")
