"""A minimal FlatBuffers reader, field by field.

The bytes come from a model file, so that each offset and length is checked where it is used. Format: flatbuffers.dev/internals.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from oplet import ensure

__all__ = ["FlatTable"]

_UINT16, _UINT32, _INT32 = struct.Struct("<H"), struct.Struct("<I"), struct.Struct("<i")


class FlatTable:
    """One FlatBuffers table; fields are numbered in schema order.

    Args:
        buffer: the whole FlatBuffer.
        what: the name of the buffer in error messages, such as "the vocabulary".
        at: the offset of the table; the root table by default.

    Raises:
        EnsureError: an offset or length leads outside of the buffer; each method raises this, too.
    """

    def __init__(self, buffer: bytes, what: str, at: int | None = None) -> None:
        self._buffer, self._what = buffer, what
        self._at = self._unpack(_UINT32, 0) if at is None else at
        vtable = self._at - self._unpack(_INT32, self._at)
        size = self._unpack(_UINT16, vtable)
        ensure(4 <= size <= len(buffer) - vtable, lambda: self._damage("its table of fields ends behind the last byte"))
        self._fields: tuple[int, ...] = struct.unpack_from(f"<{size // 2 - 2}H", buffer, vtable + 4)

    def has(self, field: int) -> bool:
        """Return whether the field is stored."""
        return field < len(self._fields) and self._fields[field] != 0

    def number(self, field: int, format: str, default: float = 0) -> Any:
        """Return a number or Boolean field; `format` as in `struct`: "i" int32, "I" uint32, "f" float32, "?" Boolean."""
        return self._unpack(struct.Struct(f"<{format}"), self._at + self._fields[field]) if self.has(field) else default

    def vector(self, field: int, dtype: DTypeLike) -> NDArray[Any]:
        """Return a vector of numbers or structs as an array view of the buffer; empty if missing."""
        kind = np.dtype(dtype).newbyteorder("<")
        if not self.has(field):
            return np.empty(0, kind)
        start, count = self._extent(self._target(field), kind.itemsize)
        return np.frombuffer(self._buffer, kind, count, start)

    def string(self, field: int) -> bytes:
        """Return a string field as bytes; b"" if missing."""
        return self._string(self._target(field)) if self.has(field) else b""

    def strings(self, field: int) -> list[bytes]:
        """Return a vector of strings as a list of bytes; their total length is limited to the buffer's, as they may overlap."""
        if not self.has(field):
            return []
        start, count = self._extent(self._target(field), 4)
        known: dict[int, bytes] = {}
        found, total = [], 0
        for place in range(start, start + 4 * count, 4):
            at = place + self._unpack(_UINT32, place)
            text = known.get(at)
            if text is None:
                text = known[at] = self._string(at)
                total += len(text)
                ensure(total <= len(self._buffer), lambda: self._damage("its strings share their bytes"))
            found.append(text)
        return found

    def table(self, field: int) -> FlatTable | None:
        """Return a sub-table field; None if missing."""
        return FlatTable(self._buffer, self._what, self._target(field)) if self.has(field) else None

    def _target(self, field: int) -> int:
        at = self._at + self._fields[field]
        return at + int(self._unpack(_UINT32, at))

    def _extent(self, at: int, itemsize: int) -> tuple[int, int]:
        """Return where the items of the vector at a position begin, and their number."""
        count = self._unpack(_UINT32, at)
        ensure(
            count * itemsize <= len(self._buffer) - at - 4, lambda: self._damage(f"a vector of {count} ends behind the last byte")
        )
        return at + 4, count

    def _string(self, at: int) -> bytes:
        start, count = self._extent(at, 1)
        return self._buffer[start : start + count]

    def _unpack(self, kind: struct.Struct, at: int) -> Any:
        if not 0 <= at <= len(self._buffer) - kind.size:
            ensure(False, self._damage(f"it refers to byte {at}"))
        return kind.unpack_from(self._buffer, at)[0]

    def _damage(self, how: str) -> str:
        return f"{self._what}, a FlatBuffer of {len(self._buffer)} bytes, is damaged: {how}; convert the model again."
