"""A minimal Protocol Buffers reader, field by field.

Format: protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from oplet import ensure

__all__ = ["fields", "integer", "single", "text"]

_WIDTHS = {1: 8, 5: 4}


_DAMAGED = "its sentencepiece model is damaged; convert the model again"


def fields(data: bytes, damaged: str = _DAMAGED) -> Iterator[tuple[int, int | bytes]]:
    """Yield (field number, value) of a protobuf message: integers for varints, bytes for everything else.

    Args:
        data: the serialized message.
        damaged: the error message for invalid bytes, without a full stop.

    Raises:
        EnsureError: the bytes are no valid message.
    """
    at = 0
    while at < len(data):
        tag, at = _varint(data, at, damaged)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            value, at = _varint(data, at, damaged)
            yield number, value
            continue
        if kind == 2:
            width, at = _varint(data, at, damaged)
        else:
            width = _WIDTHS.get(kind, -1)
        ensure(0 <= width <= len(data) - at, f"{damaged} ({len(data)} bytes, at byte {at}).")
        yield number, data[at : at + width]
        at += width


def integer(value: int | bytes) -> int:
    """Convert a protobuf field's value to int32; 0 if it has another wire type."""
    return struct.unpack("<i", struct.pack("<I", value & 0xFFFFFFFF))[0] if isinstance(value, int) else 0


def single(value: int | bytes) -> float:
    """Convert a protobuf field's value to a float32 number; 0 if it has another wire type."""
    return float(struct.unpack("<f", value)[0]) if isinstance(value, bytes) and len(value) == 4 else 0.0


def text(value: int | bytes) -> bytes:
    """Return a protobuf field's value as bytes; b"" if it is a varint."""
    return value if isinstance(value, bytes) else b""


def _varint(data: bytes, at: int, damaged: str) -> tuple[int, int]:
    value = shift = 0
    while True:
        ensure(at < len(data) and shift < 64, f"{damaged}: it ends within a number.")
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
