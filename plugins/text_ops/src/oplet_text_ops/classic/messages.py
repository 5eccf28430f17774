"""Protocol Buffers, field by field.

Format: protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from oplet import ensure

__all__ = ["fields", "integer", "single", "text"]

_WIDTHS = {1: 8, 5: 4}


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The number of each field of a message, and its value: an integer, or the bytes of anything else.

    Raises:
        EnsureError: the bytes are no message.
    """
    damage = f"its sentencepiece model of {len(data)} bytes is damaged; convert the model again."
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        if kind == 2:
            width, at = _varint(data, at)
        else:
            width = _WIDTHS.get(kind, -1)
        ensure(0 <= width <= len(data) - at, damage)
        yield number, data[at : at + width]
        at += width


def integer(value: int | bytes) -> int:
    """A field as an int32; 0 where it is none."""
    return struct.unpack("<i", struct.pack("<I", value & 0xFFFFFFFF))[0] if isinstance(value, int) else 0


def single(value: int | bytes) -> float:
    """A field as a float32; 0 where it is none."""
    return float(struct.unpack("<f", value)[0]) if isinstance(value, bytes) and len(value) == 4 else 0.0


def text(value: int | bytes) -> bytes:
    """A field as bytes; none where it is a number."""
    return value if isinstance(value, bytes) else b""


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        ensure(at < len(data) and shift < 64, "its sentencepiece model ends within a number; convert the model again.")
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
