"""Readers of Protocol Buffers' wire format: the fields of a message, and packed integers. No read leaves the bytes.

Format: protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["BYTES", "VARINT", "fields", "signed", "spans", "varints"]

#: Wire types.
VARINT, _FIXED64, BYTES, _GROUP, _GROUP_END, _FIXED32 = range(6)
_WIDTHS = {_FIXED64: 8, _GROUP: 0, _GROUP_END: 0, _FIXED32: 4}


def fields(data: bytes, most: int | None = None) -> Iterator[tuple[int, int | bytes]]:
    """Yield the fields of a message: the field's number, and its value, an unsigned integer for a varint and bytes for all else.

    Args:
        data: the serialized message.
        most: the largest number of fields; None for any.

    Raises:
        ValueError: the bytes are no message, have more fields, or hold a group; the message is a clause without a full stop.
    """
    for number, kind, start, end in spans(data, most=most):
        if kind == VARINT:
            yield number, data[start] if end - start == 1 else _varint(data, start, end)[0]
        elif kind in (_GROUP, _GROUP_END):
            raise ValueError(f"a group stands at byte {start}")
        else:
            yield number, data[start:end]


def spans(data: bytes, start: int = 0, end: int | None = None, most: int | None = None) -> Iterator[tuple[int, int, int, int]]:
    """Yield where the fields of the message `data[start:end]` lie: number, wire type, and the value's first byte and end.

    The tags that begin and end a group are fields of no bytes.

    Raises:
        ValueError: as in `fields`, but for groups.
    """
    end = len(data) if end is None else end
    count = 0
    while start < end:
        count += 1
        if most is not None and count > most:
            raise ValueError(f"a message has more than {most} fields")
        at = start
        tag, start = _varint(data, start, end)
        number, kind, place = tag >> 3, tag & 7, start
        if kind == VARINT:
            size = _varint(data, start, end)[1] - start
        elif kind == BYTES:
            size, place = _varint(data, start, end)
        else:
            size = _WIDTHS.get(kind, -1)
        if number == 0 or not 0 <= size <= end - place:
            raise ValueError(f"there is no field at byte {at}")
        start = place + size
        yield number, kind, place, start


def varints(data: bytes, start: int = 0, end: int | None = None) -> Iterator[int]:
    """Yield the unsigned integers of a packed field.

    Raises:
        ValueError: the last one has no end.
    """
    end = len(data) if end is None else end
    while start < end:
        value, start = _varint(data, start, end)
        yield value


def signed(value: int, bits: int = 64) -> int:
    """Return the lowest bits of an unsigned integer as a signed one in two's complement, as int64 and int32 fields hold it."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Return the integer at a byte, of 64 bits at most, and the byte behind it."""
    value = 0
    for shift, place in zip(range(0, 70, 7), range(at, end)):
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, place + 1
    raise ValueError(f"the number at byte {at} has no end")
