"""Fields of Protocol Buffers messages, as kernels read them: damaged bytes are a refusal, and a value of another wire type is none."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from oplet import ensure
from oplet.schema import protobuf

__all__ = ["fields", "integer", "single", "text"]


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield (field number, value) of a sentencepiece model's message: integers for varints, bytes for everything else.

    Raises:
        EnsureError: the bytes are no valid message.
    """
    try:
        yield from protobuf.fields(data)
    except ValueError as error:
        ensure(False, f"its sentencepiece model is damaged; convert the model again ({len(data)} bytes: {error}).")


def integer(value: int | bytes) -> int:
    """Convert a protobuf field's value to int32; 0 if it has another wire type."""
    return protobuf.signed(value, 32) if isinstance(value, int) else 0


def single(value: int | bytes) -> float:
    """Convert a protobuf field's value to a float32 number; 0 if it has another wire type."""
    return float(struct.unpack("<f", value)[0]) if isinstance(value, bytes) and len(value) == 4 else 0.0


def text(value: int | bytes) -> bytes:
    """Return a protobuf field's value as bytes; b"" if it is a varint."""
    return value if isinstance(value, bytes) else b""
