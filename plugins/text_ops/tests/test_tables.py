"""Tables that models carry: what they hold is read, and damage is refused."""

from __future__ import annotations

import flatbuffers
import numpy as np
import pytest

from oplet.errors import PrepareError
from oplet_text_ops.tables.double_array import DoubleArray
from oplet_text_ops.tables.flat_table import FlatTable


def table() -> bytes:
    """A table with a number, a Boolean, a vector of uint32, a string, a vector of strings, nothing and a table with a number."""
    builder = flatbuffers.Builder()
    words = [builder.CreateString(word) for word in ("a", "bc", "")]
    builder.StartVector(4, len(words), 4)
    for word in reversed(words):
        builder.PrependUOffsetTRelative(word)
    strings = builder.EndVector()
    text = builder.CreateString("text")
    units = builder.CreateNumpyVector(np.array([7, 8, 9], np.uint32))
    builder.StartObject(1)
    builder.PrependFloat32Slot(0, 1.5, 0)
    inner = builder.EndObject()
    builder.StartObject(7)
    builder.PrependInt32Slot(0, -3, 0)
    builder.PrependBoolSlot(1, True, False)
    builder.PrependUOffsetTRelativeSlot(2, units, 0)
    builder.PrependUOffsetTRelativeSlot(3, text, 0)
    builder.PrependUOffsetTRelativeSlot(4, strings, 0)
    builder.PrependUOffsetTRelativeSlot(6, inner, 0)
    builder.Finish(builder.EndObject())
    return bytes(builder.Output())


def read(found: FlatTable) -> tuple[object, ...]:
    inner = found.table(6)
    return (
        found.number(0, "i"), found.number(1, "?"), found.vector(2, np.uint32).tolist(), found.string(3), found.strings(4),
        found.number(5, "i", 11), inner and inner.number(0, "f"),
    )  # fmt: skip


def test_each_field_is_read() -> None:
    assert read(FlatTable(table(), "the table")) == (-3, True, [7, 8, 9], b"text", [b"a", b"bc", b""], 11, 1.5)


def test_missing_fields_are_empty() -> None:
    found = FlatTable(table(), "the table")
    assert not found.has(5)
    assert not found.has(99)
    assert (found.vector(5, np.uint32).size, found.string(5), found.strings(5), found.table(5)) == (0, b"", [], None)


def refusal(damaged: bytes) -> str:
    """Why the bytes are refused; "" where each field gives a value."""
    try:
        read(FlatTable(damaged, "the table"))
    except PrepareError as error:
        return str(error)
    return ""


def test_every_damaged_byte_gives_a_value_or_a_refusal() -> None:
    whole = table()
    found = [
        refusal(whole[:position] + bytes([byte]) + whole[position + 1 :])
        for position in range(len(whole))
        for byte in (0, 1, 0x7F, 0xFF)
    ]
    cut = [refusal(whole[:end]) for end in range(len(whole))]
    assert all("the table, a FlatBuffer of" in each for each in found + cut if each)
    assert any(found)
    assert not all(found)
    assert sum(map(bool, cut)) > len(whole) // 2


def test_strings_that_share_their_bytes_are_refused() -> None:
    count = 200
    # A vtable of one field and the table, then a vector of strings: each begins 4 bytes behind the last one, and has 900 bytes.
    head = (12).to_bytes(4, "little") + np.array([6, 8, 4, 0], np.uint16).tobytes() + np.array([8, 4], np.uint32).tobytes()
    vector = count.to_bytes(4, "little") + (4 * count).to_bytes(4, "little") * count
    lengths = (900).to_bytes(4, "little") * count
    with pytest.raises(PrepareError, match="share their bytes"):
        FlatTable(head + vector + lengths + b"x" * 1000, "the vocabulary").strings(0)


def trie(keys: dict[bytes, int]) -> DoubleArray:
    """A double array with these keys: each node's children stand in a block of 256 units of its own."""
    blocks: list[bytes] = [b""]
    for key in keys:
        blocks += [key[:end] for end in range(1, len(key) + 1) if key[:end] not in blocks]
    units = np.zeros(256 * (len(blocks) + 1), np.uint32)
    place = {b"": 0}
    for number, prefix in enumerate(blocks, 1):
        node, children = place[prefix], 256 * number
        offset = node ^ children
        units[node] |= offset << 10 | (0x100 if prefix in keys else 0)
        if prefix in keys:
            units[children] = 0x80000000 | keys[prefix]
        for longer in blocks:
            if len(longer) == len(prefix) + 1 and longer.startswith(prefix):
                place[longer] = children ^ longer[-1]
                units[place[longer]] = longer[-1]
    return DoubleArray(units)


def test_a_trie_finds_its_keys_and_no_others() -> None:
    keys = {b"a": 0, b"ab": 7, b"abcd": 2**31 - 1, b"\xff\x01": 3}
    found = trie(keys)
    for key, value in keys.items():
        assert found.value(found.walk(0, key)) == value
    assert found.walk(0, b"b") == -1
    assert found.value(found.walk(0, b"abc")) == -1
    assert list(found.prefixes(b"xabcdef", 1)) == [(0, 2), (7, 3), (2**31 - 1, 5)]
    assert list(found.prefixes(b"")) == []


def test_any_units_are_a_trie_without_a_child_outside() -> None:
    random = np.random.default_rng(0)
    for size in (0, 1, 5, 300):
        found = DoubleArray(random.integers(0, 2**32, size, np.uint32))
        for node in range(-1, size + 1):
            assert found.value(node) == -1 or found.value(node) >= 0
            for byte in range(1, 256):
                assert -1 <= found.step(node, byte) < max(size, 1)
