"""The reader of FlexBuffers against the library's, and on bytes that are none."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from flatbuffers import flexbuffers
from hypothesis import given
from hypothesis import strategies as st

from oplet.model.dispatch import bytecode
from oplet.schema.flexbuffers import read_flexbuffer

SINGLE = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(-1e30, 1e30),
    st.text(st.characters(min_codepoint=1, exclude_categories=["Cs"]), max_size=20),
    st.binary(max_size=20),
)
KEYS = st.text(st.characters(min_codepoint=1, max_codepoint=127), max_size=10)
VALUES = st.recursive(SINGLE, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(KEYS, inner, max_size=5), max_leaves=20)


@given(VALUES)
def test_what_the_library_writes_is_read_as_the_library_reads_it(value: Any) -> None:
    data = bytes(flexbuffers.Dumps(value))
    assert read_flexbuffer(data) == flexbuffers.Loads(data)


def built(build: Any) -> bytes:
    builder = flexbuffers.Builder()
    build(builder)
    return bytes(builder.Finish())


@pytest.mark.parametrize(
    ("build", "value"),
    [
        (lambda b: b.Null(), None),
        (lambda b: b.UInt(2**64 - 1), 2**64 - 1),
        (lambda b: b.IndirectInt(-7), -7),
        (lambda b: b.IndirectUInt(7), 7),
        (lambda b: b.IndirectFloat(0.5), 0.5),
        (lambda b: b.TypedVectorFromElements([1.5, 2.5]), [1.5, 2.5]),
        (lambda b: b.TypedVectorFromElements([1, -300]), [1, -300]),
        (lambda b: b.TypedVectorFromElements([True, False]), [True, False]),
        (lambda b: b.FixedTypedVectorFromElements([1, 2, 3]), [1, 2, 3]),
        (lambda b: b.FixedTypedVectorFromElements([0.5, 2.0]), [0.5, 2.0]),
        (lambda b: b.Key("name"), "name"),
    ],
)
def test_every_kind_of_value_is_read(build: Any, value: Any) -> None:
    assert read_flexbuffer(built(build)) == value


@given(VALUES, st.data())
def test_damaged_bytes_are_read_or_refused_in_words(value: Any, data: st.DataObject) -> None:
    damaged = bytearray(flexbuffers.Dumps(value))
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    words = ""
    try:
        read_flexbuffer(bytes(damaged[: data.draw(st.integers(0, len(damaged)))]))
    except ValueError as error:
        words = str(error)
    assert not words.endswith(".")


def test_vectors_that_share_their_parts_over_and_over_are_refused_soon() -> None:
    # 20 vectors of 10 elements, each of which is the vector before: 10 ** 20 values in 460 bytes.
    data = bytearray([0])
    target = 0
    data[:] = [1, 7, 1 << 2]  # a vector of one integer: size, value, type
    target = 1
    for _ in range(20):
        data.append(10)
        start = len(data)
        data += bytes(start + i - target for i in range(10))
        data += bytes([10 << 2] * 10)
        target = start
    data += bytes([len(data) - target, 10 << 2, 1])
    with pytest.raises(ValueError, match="refer to one another without end"):
        read_flexbuffer(bytes(data))  # who follows all ways through it is not done in years


def test_a_vector_that_holds_itself_is_refused() -> None:
    with pytest.raises(ValueError, match="lie in each other|without end"):
        read_flexbuffer(bytes([1, 0, 10 << 2, 2, 10 << 2, 1]))


def test_more_values_than_any_converter_writes_are_refused() -> None:
    count = (1 << 20) + 1
    data = struct.pack("<I", count) + bytes(4 * count)
    root = struct.pack("<I", len(data) - 4) + bytes([11 << 2 | 2, 4])  # a vector of 32-bit integers
    with pytest.raises(ValueError, match="more than 1,048,576 values"):
        read_flexbuffer(data + root)


def test_options_of_compiled_code_are_read_with_the_same_bounds() -> None:
    builder = flexbuffers.Builder()
    with builder.Map():
        builder.UInt("bytecode_offset", 70_000)
        builder.UInt("bytecode_size", 9)
    assert bytecode(bytes(builder.Finish())) == (70_000, 9)
    # 4 ** 9 values in a hundred bytes, beside what is looked for: the library reads them all, one by one.
    data = bytearray(b"bytecode_offset\0bytecode_size\0zzz\0")
    data += bytes([1, 7, 1 << 2])
    target = len(data) - 2
    for _ in range(9):
        data.append(4)
        start = len(data)
        data += bytes(start + i - target for i in range(4)) + bytes([10 << 2] * 4)
        target = start
    data.append(3)
    keys = len(data)
    data += bytes([keys, keys + 1 - 16, keys + 2 - 30])
    data += bytes([len(data) - keys, 1, 3])  # where the keys are, how wide, how many values
    values = len(data)
    data += bytes([7, 9, values + 2 - target, 2 << 2, 2 << 2, 10 << 2])
    data += bytes([len(data) - values, 9 << 2, 1])
    assert bytecode(bytes(data)) is None
