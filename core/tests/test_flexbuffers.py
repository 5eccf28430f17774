"""The reader of FlexBuffers against the library's, and on bytes that are none."""

from __future__ import annotations

import time
from typing import Any

import pytest
from flatbuffers import flexbuffers
from hypothesis import given
from hypothesis import strategies as st

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
    before = time.perf_counter()
    with pytest.raises(ValueError, match="refer to one another without end"):
        read_flexbuffer(bytes(data))
    assert time.perf_counter() - before < 60


def test_a_vector_that_holds_itself_is_refused() -> None:
    with pytest.raises(ValueError, match="lie in each other|without end"):
        read_flexbuffer(bytes([1, 0, 10 << 2, 2, 10 << 2, 1]))
