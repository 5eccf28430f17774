"""Protocol Buffers messages are read as the format says, and bytes that are none are refused."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oplet.schema.protobuf import BYTES, VARINT, fields, signed, spans, varints


def varint(value: int) -> bytes:
    return bytes([value]) if value < 0x80 else bytes([value & 0x7F | 0x80]) + varint(value >> 7)


def written(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


NUMBERS, UNSIGNED = st.integers(1, 2**29 - 1), st.integers(0, 2**64 - 1)
MESSAGES = st.lists(st.tuples(NUMBERS, UNSIGNED | st.binary(max_size=200)))


@given(MESSAGES)
def test_fields_are_those_that_were_written(message: list[tuple[int, int | bytes]]) -> None:
    assert list(fields(b"".join(written(*each) for each in message))) == message


@given(MESSAGES, st.binary(max_size=9), st.binary(max_size=9))
def test_spans_stay_between_the_ends_of_a_message_within_others(
    message: list[tuple[int, int | bytes]], before: bytes, after: bytes
) -> None:
    inside = b"".join(written(*each) for each in message)
    data = before + inside + after
    found = list(spans(data, len(before), len(before) + len(inside)))
    assert [
        (number, next(varints(data, start, end)) if kind == VARINT else data[start:end]) for number, kind, start, end in found
    ] == message


def test_numbers_of_fixed_size_are_bytes() -> None:
    data = b"\x0d" + struct.pack("<f", 0.5) + b"\x11" + struct.pack("<d", 0.25)
    assert list(fields(data)) == [(1, struct.pack("<f", 0.5)), (2, struct.pack("<d", 0.25))]


@given(st.lists(UNSIGNED))
def test_packed_integers_are_those_that_were_written(values: list[int]) -> None:
    assert list(varints(b"".join(map(varint, values)))) == values


@given(st.integers(-(2**63), 2**63 - 1))
def test_negative_numbers_are_two_s_complement(value: int) -> None:
    assert signed(value % 2**64) == value
    assert signed(value % 2**64, 32) == struct.unpack("<i", struct.pack("<q", value)[:4])[0]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x08", "the number at byte 1 has no end"),
        (b"\x08" + b"\xff" * 11, "the number at byte 1 has no end"),
        (b"\x12\x05ab", "there is no field at byte 0"),
        (b"\x08\x01\x1d\x00", "there is no field at byte 2"),
        (b"\x00\x01", "there is no field at byte 0"),
        (b"\x0e\x01", "there is no field at byte 0"),
        (b"\x0b\x0c", "a group stands at byte 1"),
        (b"\x08\x01" * 4, "a message has more than 3 fields"),
    ],
)
def test_what_is_no_message_is_refused_with_the_byte(data: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        list(fields(data, most=3))


@given(st.binary(max_size=60))
def test_any_bytes_are_fields_or_refused(data: bytes) -> None:
    try:
        found = list(spans(data))
    except ValueError:
        return
    assert all(0 < start <= end <= len(data) for _, kind, start, end in found if kind == BYTES)
