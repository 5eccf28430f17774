"""The file format: every table round-trips, and no damaged file gets past the reader."""

from __future__ import annotations

import contextlib
import json
import struct
import sys
from enum import IntEnum
from types import FrameType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.places import SHARED

from oplet.errors import ModelError
from oplet.schema import enums, options, stablehlo_options, tables
from oplet.schema.decode import decode
from oplet.schema.encode import encode, encode_pieces
from oplet.schema.table import Field, Table, int32, strings, vector
from oplet.schema.table import tables as tables_of

FACTS = SHARED / "facts" / "schema.json"
MODULES = (tables, options, stablehlo_options)
TABLES = {
    name: cls
    for m in MODULES
    for name, cls in vars(m).items()
    if isinstance(cls, type) and issubclass(cls, Table) and cls is not Table
}
_INTEGERS = {"int8": (8, True), "int32": (32, True), "uint32": (32, False), "int64": (64, True), "uint64": (64, False)}


def _known(field: Field, number: int) -> int:
    """A number as it reads back: a member of the enumeration if it has one, else the plain number of a later schema."""
    members = {int(member): member for member in field.enum or ()}
    return members.get(number, number)


def scalars(field: Field) -> st.SearchStrategy[Any]:
    if field.enum is not None:
        return st.sampled_from(list(field.enum)) | st.integers(100, 127).map(lambda n: _known(field, n))
    if field.number == "bool":
        return st.booleans()
    if field.number == "float32":
        return st.floats(width=32)
    bits, signed = _INTEGERS[field.number]
    return st.integers(-(2 ** (bits - 1)) if signed else 0, 2 ** (bits - signed) - 1)


def values(field: Field) -> st.SearchStrategy[Any]:
    if field.kind == "scalar":
        return scalars(field)
    if field.kind == "string":
        return st.text(max_size=8)
    if field.kind == "vector":
        bits = st.binary(max_size=24).map(lambda b: np.frombuffer(b[: len(b) // 8 * 8], np.uint8))
        return bits.map(lambda b: b % 2 == 1 if field.dtype == bool else b.view(field.dtype))
    if field.kind == "union":
        return st.sampled_from(sorted((field.members or {}).items())).flatmap(lambda item: instances(item[1]))
    table = instances(field.table)
    return table if field.kind == "table" else st.lists(table, max_size=2)


def instances(cls: type[Table]) -> st.SearchStrategy[Table]:
    def build(data: dict[str, Any]) -> Table:
        return cls(**{name: value for name, value in data.items() if value is not None})

    chosen = {f.name: st.none() | st.deferred(lambda f=f: values(f)) for f in cls.fields}
    return st.fixed_dictionaries(chosen).map(build)


@pytest.mark.parametrize("name", sorted(TABLES))
def test_a_table_with_every_field_set_reads_back_equal(name: str) -> None:
    @settings(max_examples=8, deadline=None)
    @given(instances(TABLES[name]))
    def check(table: Table) -> None:
        data = encode(table)
        unknown: list[str] = []
        found = decode(type(table), memoryview(data), unknown=unknown)
        assert found == table
        assert not unknown
        assert encode(found) == data

    check()


@pytest.mark.skipif(not FACTS.exists(), reason="the format's facts lie outside the project")
def test_the_declarations_are_the_formats() -> None:
    facts = json.loads(FACTS.read_text())
    assert sorted(TABLES) == sorted(facts["tables"])
    for name, table in facts["tables"].items():
        declared = {(f.name, f.id) for f in TABLES[name].fields}
        assert declared == {(f["name"], f["id"]) for f in table["fields"]}, name
        for field in table["fields"]:
            if field["default"] is not None and field["type"] in ("int", "bool", "float", "long"):
                wanted = {"true": True, "false": False}.get(field["default"], field["default"])
                assert float(getattr(TABLES[name], field["name"])) == float(wanted), (name, field)
    for name, enum in facts["enums"].items():
        declared_enum: type[IntEnum] = getattr(enums, name)
        assert {m.name: int(m) for m in declared_enum} == enum["members"], name
    unions = {
        "BuiltinOptions": options.BuiltinOptions,
        "BuiltinOptions2": stablehlo_options.BuiltinOptions2,
        "QuantizationDetails": tables.QuantizationDetails,
        "SparseIndexVector": tables.SparseIndexVector,
    }
    for name, members in unions.items():
        assert {cls.__name__: n for n, cls in members.items()} == {k.split(" ")[0]: n for k, n in facts["unions"][name].items()}


def test_a_field_that_an_old_file_lacks_reads_as_its_default() -> None:
    class OldDepthwise(Table):  # as version 1 wrote it, before dilation
        stride_w: int = int32(1)

    new = decode(options.DepthwiseConv2DOptions, memoryview(encode(OldDepthwise(stride_w=2))))
    assert (new.stride_w, new.dilation_w_factor, new.dilation_h_factor) == (2, 1, 1)


def test_fields_carry_the_op_version_that_introduced_them() -> None:
    since = {f.name: f.since for f in options.FullyConnectedOptions.fields}
    assert since["fused_activation_function"] == 1
    assert since["keep_num_dims"] == 5
    assert since["quantized_bias_type"] == 11


def test_a_field_from_a_later_schema_is_passed_over() -> None:
    class Later(Table):  # Uint16Vector with a field that this schema does not know
        values: Any = vector(0, "uint16")
        extra: int = int32(1)

    data = encode(Later(values=np.array([1, 2], np.uint16), extra=7))
    assert decode(tables.Uint16Vector, memoryview(data)).values.tolist() == [1, 2]


class _Names(Table):
    names: list[str] | None = strings(0)


class _Groups(Table):
    groups: list[_Names] | None = tables_of(0, _Names)


def test_vectors_of_strings_read_back_in_any_number_of_tables_and_damaged_ones_are_refused() -> None:
    made = _Groups(groups=[_Names(names=[f"n{i}", "", "Grüße", "x" * 300]) for i in range(200)] + [_Names(names=[]), _Names()])
    data = encode(made)
    read = decode(_Groups, memoryview(data))
    assert read == made
    assert [each.names for each in (read.groups or [])[-2:]] == [[], None]
    few = encode(_Names(names=["abc", "de"]))
    outcomes = set()
    for place in range(len(few) - 16):
        damaged = bytearray(few)
        damaged[place] = 0xFF
        try:
            decode(_Names, memoryview(bytes(damaged)))
            outcomes.add("read")
        except ModelError:
            outcomes.add("refused")
    assert outcomes == {"read", "refused"}
    with pytest.raises(ModelError, match=r"_Names.names is 3, which is not text"):
        encode(_Names(names=["a", 3]))  # type: ignore[list-item]


def test_absent_and_empty_vectors_are_told_apart() -> None:
    empty = decode(tables.Tensor, memoryview(encode(tables.Tensor(shape=np.zeros(0, np.int32)))))
    assert empty.shape is not None
    assert empty.shape.size == 0
    assert decode(tables.Tensor, memoryview(encode(tables.Tensor()))).shape is None


def test_vectors_are_read_only_views_of_the_file() -> None:
    data = bytearray(encode(tables.Buffer(data=np.arange(200, dtype=np.uint8))))
    buffer = decode(tables.Buffer, memoryview(data))
    assert np.shares_memory(buffer.data, np.frombuffer(data, np.uint8))
    with pytest.raises(ValueError, match="read-only"):
        buffer.data[0] = 1


def test_long_vectors_are_handed_on_not_copied_and_aligned() -> None:
    data = np.arange(5000, dtype=np.uint8)
    pieces = encode_pieces(tables.Buffer(data=data))
    assert any(np.shares_memory(np.frombuffer(piece, np.uint8), data) for piece in pieces if len(piece))
    whole = b"".join(pieces)
    assert whole.index(data.tobytes()) % 16 == 0
    assert (decode(tables.Buffer, memoryview(whole)).data == data).all()


def test_encoding_and_decoding_take_time_in_proportion_to_the_size() -> None:
    def steps(count: int) -> int:
        counted = 0

        def count_call(frame: FrameType, event: str, argument: Any) -> None:
            nonlocal counted
            counted += 1

        graph = tables.SubGraph(operators=[tables.Operator(inputs=np.array([i], np.int32)) for i in range(count)])
        sys.setprofile(count_call)
        try:
            decode(tables.SubGraph, memoryview(encode(graph)))
        finally:
            sys.setprofile(None)
        return counted

    assert steps(2000) < 2.1 * steps(1000)


def test_equal_tables_give_equal_bytes() -> None:
    def model() -> tables.Model:
        return tables.Model(
            version=3, description="x", buffers=[tables.Buffer(), tables.Buffer(data=np.arange(9, dtype=np.uint8))]
        )

    assert encode(model()) == encode(model())


def sample() -> bytes:
    tensor = tables.Tensor(shape=np.array([2, 3], np.int32), name="x", buffer=1)
    graph = tables.SubGraph(
        tensors=[tensor],
        operators=[tables.Operator(inputs=np.array([0], np.int32), builtin_options=options.Pool2DOptions(stride_w=3))],
    )
    return encode(
        tables.Model(version=3, subgraphs=[graph], buffers=[tables.Buffer(), tables.Buffer(data=np.zeros(24, np.uint8))])
    )


@pytest.mark.parametrize("length", range(0, len(sample()), 3))
def test_a_truncated_file_is_one_clear_error_or_reads_whole(length: int) -> None:
    try:
        decode(tables.Model, memoryview(sample()[:length]))
    except ModelError as error:
        assert "at byte" in str(error)  # noqa: PT017  both outcomes are right; any other exception is not


@given(st.integers(0, len(sample()) - 1), st.integers(0, 255))
def test_a_flipped_byte_never_raises_anything_but_a_model_error(position: int, byte: int) -> None:
    data = bytearray(sample())
    data[position] = byte
    with contextlib.suppress(ModelError):
        decode(tables.Model, memoryview(data))


def crowded() -> bytes:
    """A model with enough tables of each class for them to be read together, some with other fields than most."""
    count = 20
    quantized = tables.QuantizationParameters(scale=np.ones(1, np.float32), zero_point=np.zeros(1, np.int64))
    tensors = [
        tables.Tensor(
            shape=np.arange(i % 3, dtype=np.int32),
            type=enums.TensorType.INT8 if i % 2 else enums.TensorType.FLOAT32,
            name="x" * 6 * i,
            buffer=i,
            quantization=quantized if i % 2 else tables.QuantizationParameters(),
        )
        for i in range(2 * count)
    ]
    kinds = (options.Pool2DOptions(stride_w=3), options.SoftmaxOptions(beta=2.0), None)
    operators = [
        tables.Operator(opcode_index=i, inputs=np.array([i, 1], np.int32), builtin_options=kinds[i // count])
        for i in range(3 * count)
    ]
    buffers = [tables.Buffer(data=np.arange(i, dtype=np.uint8), size=i) for i in range(2 * count)]
    return encode(tables.Model(subgraphs=[tables.SubGraph(tensors=tensors, operators=operators)], buffers=buffers))


def read_as(together: bool, data: bytes, monkeypatch: pytest.MonkeyPatch) -> tables.Model | None:
    """What tables say that are read together or one by one; None if they are refused."""
    with monkeypatch.context() as patch:
        if not together:
            patch.setattr("oplet.schema.decode._MANY", sys.maxsize)
        try:
            return decode(tables.Model, memoryview(data))
        except ModelError:
            return None


def test_tables_that_are_read_together_are_what_they_are_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    found = read_as(True, crowded(), monkeypatch)
    assert found is not None
    assert found == read_as(False, crowded(), monkeypatch)
    assert encode(found) == crowded()


@pytest.mark.parametrize("step", [31, pytest.param(5, marks=pytest.mark.sweep)])
def test_of_a_damaged_file_tables_are_read_together_as_they_are_one_by_one(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for position in range(0, len(crowded()), step):
        data = bytearray(crowded())
        data[position] ^= 1 << position % 8
        assert read_as(True, data, monkeypatch) == read_as(False, data, monkeypatch), position


def shared_tables(count: int) -> bytes:
    """A Model whose `subgraphs` are `count` times one SubGraph, whose `operators` are `count` times one Operator."""
    vtables = struct.pack("<HHHHH", 10, 8, 0, 0, 4) + struct.pack("<HHHHHH", 12, 8, 0, 0, 0, 4) + struct.pack("<HH", 4, 4)
    model = 4 + len(vtables) + (-len(vtables)) % 4
    graph = model + 8 + 4 + 4 * count
    operator = graph + 8 + 4 + 4 * count

    def table(at: int, vtable: int) -> bytes:
        return struct.pack("<iI", at - vtable, 4)  # its vector follows at once

    def offsets(at: int, target: int) -> bytes:
        return struct.pack("<I", count) + b"".join(struct.pack("<I", target - (at + 4 + 4 * i)) for i in range(count))

    head = struct.pack("<I", model) + vtables.ljust(model - 4, b"\0")
    body = table(model, 4) + offsets(model + 8, graph) + table(graph, 14) + offsets(graph + 8, operator)
    return head + body + struct.pack("<i", operator - 26)


def test_a_few_shared_tables_read_as_what_they_are() -> None:
    model = decode(tables.Model, memoryview(shared_tables(1)))
    assert [len(graph.operators or []) for graph in model.subgraphs or []] == [1]


def test_tables_that_share_one_place_four_million_times_are_refused_at_once() -> None:
    with pytest.raises(ModelError, match="more tables than its bytes can hold"):
        decode(tables.Model, memoryview(shared_tables(2000)))


def test_fields_that_overlap_in_a_damaged_table_are_read_each_by_itself() -> None:
    data = bytearray(encode(tables.Metadata(name="x", buffer=7)))
    position = int.from_bytes(data[:4], "little")
    vtable = position - int.from_bytes(data[position : position + 4], "little", signed=True)
    data[vtable + 6 : vtable + 8] = data[vtable + 4 : vtable + 6]  # the buffer's number lies where the name's offset does
    found = decode(tables.Metadata, memoryview(data))
    offset = position + int.from_bytes(data[vtable + 4 : vtable + 6], "little")
    assert found.name == "x"
    assert found.buffer == int.from_bytes(data[offset : offset + 4], "little")


def test_what_a_vtable_says_does_not_leak_from_one_file_into_another() -> None:
    first = decode(tables.Metadata, memoryview(encode(tables.Metadata(name="first", buffer=1))))
    second = decode(tables.Metadata, memoryview(encode(tables.Metadata(name="second", buffer=2))))
    assert (first.name, first.buffer, second.name, second.buffer) == ("first", 1, "second", 2)
