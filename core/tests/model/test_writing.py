"""Writing models: what is read is kept or refused, constants lie where readers find them, files appear whole."""

from __future__ import annotations

import io
import os
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

from oplet import Model
from oplet.errors import ModelError
from oplet.model.save import writing
from oplet.schema import options, tables
from oplet.schema.decode import decode
from oplet.schema.encode import encode
from oplet.schema.enums import BuiltinOperator
from oplet.schema.table import Table, int32, string, uint32, union, vector
from oplet.schema.table import tables as vector_of_tables


def of_bytes(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8)


def small(*constants: bytes, **fields: Any) -> tables.Model:
    """A model of nothing but buffers."""
    buffers = [tables.Buffer(), *(tables.Buffer(data=of_bytes(c)) for c in constants)]
    return tables.Model(version=3, buffers=buffers, subgraphs=[tables.SubGraph(name="main", tensors=[])], **fields)


def constants(model: Model) -> list[bytes]:
    found = [model.buffer(i) for i in range(len(model.root.buffers or []))]
    return [b"" if data is None else data.tobytes() for data in found]


# What a later schema may bring.


class LaterBuffer(Table):
    data: Any = vector(0, "uint8")
    offset: int = int32(1)
    checksum: int = int32(3)


class LaterQuantization(Table):
    between: int = int32(4)  # the slot of the union's hidden type is 4: this is a type without a value
    dimension: int = int32(6)


class LaterOptions(Table):
    speed: int = int32(0)


class LaterOperator(Table):
    opcode_index: int = uint32(0)
    builtin_options: Any = union(4, {126: options.AddOptions, 250: LaterOptions, 11: options.AddOptions})


class LaterSubGraph(Table):
    operators: Any = vector_of_tables(3, LaterOperator)
    name: Any = string(4)


class LaterModel(Table):
    version: int = uint32(0)
    subgraphs: Any = vector_of_tables(2, LaterSubGraph)
    buffers: Any = vector_of_tables(4, LaterBuffer)
    licence: Any = string(17)


def test_fields_of_a_later_schema_can_be_read_but_not_written() -> None:
    later = LaterModel(version=3, buffers=[LaterBuffer(data=of_bytes(b"abc"), checksum=5)], licence="free")
    model = Model.from_bytes(encode(later))
    assert constants(model) == [b"abc"]
    assert [what.split(" at ")[0] for what in model.unknown] == ["field 3 of Buffer", "field 17 of Model"]
    with pytest.raises(ModelError, match="field 3 of Buffer at byte .* upgrade oplet"):
        model.to_bytes()


def test_a_saved_file_stays_as_it_is_when_the_new_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(encode(LaterModel(version=3, licence="free")))
    before = path.read_bytes()
    with pytest.raises(ModelError, match="field 17 of Model"):
        Model.open(path).save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["m.tflite"]


def test_a_union_member_of_a_later_schema_is_refused_when_written() -> None:
    later = LaterModel(version=3, subgraphs=[LaterSubGraph(operators=[LaterOperator(builtin_options=LaterOptions(speed=3))])])
    model = Model.from_bytes(encode(later))
    assert "member 250 of the union Operator.builtin_options at" in model.unknown[0]
    with pytest.raises(ModelError, match="member 250"):
        model.to_bytes()


@pytest.mark.parametrize(
    ("slots", "what"),
    [
        ({3: b"\x0b"}, ""),
        ({3: b"\xfa"}, "member 250 of the union Operator.builtin_options, which has no value"),
        ({3: b"\0"}, ""),
        ({4: b"\x04\0\0\0"}, "a value of no type in the union Operator.builtin_options"),
    ],
)
def test_half_a_union_is_noticed(slots: dict[int, bytes], what: str) -> None:
    field, raw = next(iter(slots.items()))
    vtable = struct.pack("<HH5H", 14, 8, *[4 if i == field else 0 for i in range(5)])
    data = struct.pack("<I4s", 24, b"TFL3") + vtable + b"\0\0" + struct.pack("<i4s", 16, raw) + bytes(8)
    unknown: list[str] = []
    decode(tables.Operator, memoryview(data), unknown=unknown)
    assert [text.rsplit(" at byte", 1)[0] for text in unknown] == ([what] if what else [])


def test_only_the_first_unknown_parts_are_remembered() -> None:
    later = LaterModel(version=3, buffers=[LaterBuffer(checksum=5) for _ in range(1000)])
    assert 1 <= len(Model.from_bytes(encode(later)).unknown) <= 16


def test_a_value_that_its_field_cannot_hold_is_refused_by_name() -> None:
    for root, words in [
        (tables.Tensor(buffer=-1), "Tensor.buffer is -1, which does not fit into its field of type uint32"),
        (options.Pool2DOptions(stride_w=1.5), "Pool2DOptions.stride_w is 1.5"),
        (options.LeakyReluOptions(alpha=1e300), "LeakyReluOptions.alpha is 1e.300"),
        (tables.Tensor(shape=np.array([2**40])), "Tensor.shape holds int64 values that do not fit into its vector of int32"),
        (tables.Tensor(shape=np.array([0.5])), "Tensor.shape holds float64 values"),
        (tables.Tensor(name=b"x"), "Tensor.name is b'x'"),
        (tables.Tensor(name="\ud800"), "not text that UTF-8 can hold"),
        (tables.Tensor(quantization=tables.Buffer()), "Tensor.quantization takes QuantizationParameters, not a Buffer"),
        (tables.SubGraph(tensors=[None]), "SubGraph.tensors takes Tensor, not a NoneType"),
        (tables.Operator(builtin_options=tables.Buffer()), "Operator.builtin_options is a Buffer, which is not a member"),
    ]:
        with pytest.raises(ModelError, match=words):
            encode(root)


def test_text_that_is_not_utf_8_keeps_its_bytes() -> None:
    root = decode(tables.Tensor, memoryview(encode(tables.Tensor(name=b"\xff\xfe".decode("utf-8", "surrogateescape")))))
    assert b"\xff\xfe" in encode(root)


# Where constants go.


@pytest.mark.parametrize("size", [1, 16, 100, 5000])
def test_constants_inside_and_outside_hold_the_same_bytes_aligned(size: int) -> None:
    wanted = [b"", b"a" * size, b"", b"b" * (size + 3)]
    model = Model(small(*wanted[1:]))
    outside = Model.from_bytes(model.to_bytes("outside"))
    assert constants(outside)[:4] == wanted
    for index in (1, 3):
        place = (outside.root.buffers or [])[index].offset
        assert place > 1
        assert place % 16 == 0
    inside = Model.from_bytes(outside.to_bytes("inside"))
    assert constants(inside)[:4] == wanted
    assert all(buffer.offset == 0 for buffer in inside.root.buffers or [])
    start = np.frombuffer(inside.data, np.uint8).ctypes.data
    assert (inside.root.buffers or [])[3].data.ctypes.data % 16 == start % 16


def test_constants_that_came_outside_stay_outside_and_the_bytes_the_same() -> None:
    first = Model(small(b"abc" * 9, b"d")).to_bytes("outside")
    again = Model.from_bytes(first)
    assert again.to_bytes() == first
    assert (again.root.buffers or [])[1].offset > 1


def test_the_metadata_says_that_constants_lie_outside_while_they_do() -> None:
    outside = Model.from_bytes(Model(small(b"abc")).to_bytes("outside"))
    assert outside.metadata("buffer_location") is not None
    assert bytes(outside.metadata("buffer_location")) == b"outside flatbuffers"
    assert Model.from_bytes(outside.to_bytes("inside")).metadata("buffer_location") is None


def test_metadata_stays_where_readers_look_for_it() -> None:
    root = small(b"notes", b"weights", metadata=[tables.Metadata(name="notes", buffer=1)])
    buffers = Model.from_bytes(Model(root).to_bytes("outside")).root.buffers or []
    assert [b.offset > 1 for b in buffers[:3]] == [False, False, True]


def test_constants_go_outside_by_themselves_when_the_flatbuffer_would_be_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "LIMIT", 1000)
    model = Model(small(b"x" * 900, b"y" * 900))
    assert constants(Model.from_bytes(model.to_bytes()))[1:3] == [b"x" * 900, b"y" * 900]
    assert (Model.from_bytes(model.to_bytes()).root.buffers or [])[1].offset > 1
    with pytest.raises(ModelError, match="write its constants 'outside'"):
        model.to_bytes("inside")
    with pytest.raises(ModelError, match="tables alone"):
        Model(small(description="x" * 1000)).to_bytes()


def test_constants_of_any_size_are_laid_out_without_being_touched() -> None:
    root = small()
    half = np.zeros(3 << 30, np.uint8)  # the system gives memory to pages only when they are used
    root.buffers = [tables.Buffer(), tables.Buffer(data=half), tables.Buffer(data=half)]
    pieces = writing.pieces(Model(root))
    assert sum(len(piece) for piece in pieces) > 6 << 30
    assert sum(np.shares_memory(np.frombuffer(p, np.uint8), half) for p in pieces if len(p)) == 2
    read = decode(tables.Model, memoryview(b"".join(p for p in pieces if len(p) < 1 << 20)))
    first, second = (read.buffers or [])[1:3]
    assert (first.size, second.size) == (3 << 30, 3 << 30)
    assert second.offset == first.offset + (3 << 30)
    with pytest.raises(ModelError, match="write its constants .outside"):
        Model(root).to_bytes("inside")


def test_an_unknown_place_for_constants_is_refused() -> None:
    with pytest.raises(ModelError, match="not 'beside'"):
        Model(small()).to_bytes("beside")  # type: ignore[arg-type]


def test_what_two_buffers_share_in_the_file_is_written_once() -> None:
    first = Model.from_bytes(Model(small(b"w" * 5000, b"v")).to_bytes("outside"))
    buffers = first.root.buffers or []
    buffers[2].offset, buffers[2].size = buffers[1].offset, buffers[1].size
    written = first.to_bytes()
    assert len(written) < 7000
    assert constants(Model.from_bytes(written))[1:3] == [b"w" * 5000] * 2


def test_a_constant_that_lay_outside_can_be_replaced() -> None:
    model = Model.from_bytes(Model(small(b"old" * 1000, b"other")).to_bytes("outside"))
    (model.root.buffers or [])[2] = tables.Buffer(data=of_bytes(b"new"))
    assert constants(Model.from_bytes(model.to_bytes()))[1:3] == [b"old" * 1000, b"new"]


def test_data_inside_wins_over_an_offset_as_it_does_in_litert() -> None:
    root = small()
    root.buffers = [tables.Buffer(), tables.Buffer(data=of_bytes(b"in"), offset=10**9, size=4)]
    model = Model.from_bytes(encode(root))
    assert constants(model) == [b"", b"in"]
    assert (Model.from_bytes(model.to_bytes()).root.buffers or [])[1].offset == 0


def with_custom_node(custom: bytes, name: str = "Mine") -> tables.Model:
    code = tables.OperatorCode(builtin_code=BuiltinOperator.CUSTOM, deprecated_builtin_code=32, custom_code=name)
    root = small(operator_codes=[code])
    (root.subgraphs or [])[0].operators = [tables.Operator(custom_options=of_bytes(custom))]
    return root


def node(model: Model) -> tables.Operator:
    return ((model.root.subgraphs or [])[0].operators or [])[0]


def test_large_custom_options_go_outside_with_the_constants_and_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "_LARGE_OPTIONS", 100)
    model = Model(with_custom_node(b"o" * 100))
    outside = Model.from_bytes(model.to_bytes("outside"))
    assert node(outside).custom_options is None
    assert node(outside).large_custom_options_offset % 16 == 0
    assert outside.custom_options(node(outside)) == b"o" * 100
    assert outside.to_bytes() == Model.from_bytes(outside.to_bytes()).to_bytes()
    inside = Model.from_bytes(outside.to_bytes("inside"))
    assert node(inside).large_custom_options_offset == 0
    assert inside.root == Model.from_bytes(model.to_bytes()).root


# What other tools attach.


@pytest.mark.parametrize("absolute", [True, False])
def test_an_attached_archive_comes_along_and_stays_readable(absolute: bool) -> None:
    plain = Model(small(b"abc")).to_bytes()
    file = io.BytesIO(plain if absolute else b"")
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("labels.txt", "cat\ndog\n" * 50, zipfile.ZIP_DEFLATED)
        archive.writestr("more.txt", "x")
    model = Model.from_bytes(file.getvalue() if absolute else plain + file.getvalue())
    (model.root.buffers or [])[1].data = of_bytes(b"z" * 4000)
    written = model.to_bytes()
    with zipfile.ZipFile(io.BytesIO(written)) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["labels.txt", "more.txt"]
        assert archive.read("labels.txt") == b"cat\ndog\n" * 50
    assert Model.from_bytes(written).to_bytes() == written


def test_bytes_behind_the_model_that_nothing_refers_to_come_along_or_are_left_out_on_request() -> None:
    data = Model(small(b"abc")).to_bytes()
    assert Model.from_bytes(data + bytes(100)).to_bytes() == data
    model = Model.from_bytes(data + b"whatever")
    assert model.to_bytes(unreferenced="drop") == data
    (model.root.buffers or [])[1].data = of_bytes(b"z" * 4000)
    with pytest.warns(UserWarning, match=rf"has 8 bytes behind its tables and constants, at byte {len(data)}, that nothing"):
        written = model.to_bytes()
    assert written.endswith(b"whatever")
    with pytest.warns(UserWarning, match="has 8 bytes"):
        assert Model.from_bytes(written).to_bytes() == written
    with pytest.raises(ModelError, match="'keep'.*'drop'"):
        model.to_bytes(unreferenced="forget")  # type: ignore[arg-type]


def test_what_begins_as_an_archive_and_cannot_be_moved_is_dropped_on_request_only() -> None:
    data = Model(small(b"abc")).to_bytes()
    model = Model.from_bytes(data + b"PK\3\4 but no directory")
    with pytest.raises(ModelError, match="begin as a zip archive.*--drop-unreferenced"):
        model.to_bytes()
    assert model.to_bytes(unreferenced="drop") == data


def test_bytes_behind_a_model_stay_where_compiled_code_may_be_among_them() -> None:
    data = Model(with_custom_node(b"NPU_BYTE_CODE" + bytes(300), "DISPATCH_OP")).to_bytes()
    with pytest.raises(ModelError, match=r"node 0 \(DISPATCH_OP\) of subgraph 0.*compile the model again"):
        Model.from_bytes(data + b"machine code").to_bytes()


def test_compiled_code_behind_a_model_moves_with_it() -> None:
    values = {"bytecode_offset": 2**40 + 1, "bytecode_size": 2**40 + 5, "name": "npu"}
    wide = bytes(flexbuffers.Dumps(values))
    wide = wide.replace(struct.pack("<Q", 2**40 + 5), struct.pack("<Q", 5))
    plain = Model(with_custom_node(wide, "DISPATCH_OP")).to_bytes()
    placed = wide.replace(struct.pack("<Q", 2**40 + 1), struct.pack("<Q", len(plain)))
    root = with_custom_node(placed, "DISPATCH_OP")
    model = Model.from_bytes(encode(root) + b"CODE!")
    model.root.description = "d" * 500
    written = Model.from_bytes(model.to_bytes())
    found = flexbuffers.Loads(bytearray(written.custom_options(node(written))))
    assert found["name"] == "npu"
    assert found["bytecode_offset"] > len(plain)
    assert bytes(written.data[found["bytecode_offset"] :][: found["bytecode_size"]]) == b"CODE!"
    assert written.to_bytes() == bytes(written.data)


# Files beside the model.


@pytest.fixture
def external(tmp_path: Path) -> Path:
    """A model with an external buffer, in a folder of its own."""
    root = small(
        external_buffer_groups=[tables.ExternalBufferGroup(name="weights/a.bin")],
        external_buffers=[tables.ExternalBuffer(id=1, length=4)],
    )
    folder = tmp_path / "here"
    (folder / "weights").mkdir(parents=True)
    (folder / "weights" / "a.bin").write_bytes(b"1234")
    (folder / "m.tflite").write_bytes(Model(root).to_bytes())
    return folder / "m.tflite"


def test_files_of_external_buffers_are_copied_along(external: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    Model.open(external).save(there / "m.tflite")
    assert Model.open(there / "m.tflite").external_buffer(1).tobytes() == b"1234"
    Model.open(external).save(there / "again.tflite")
    Model.open(external).save(external)
    assert sorted(os.listdir(there)) == ["again.tflite", "m.tflite", "weights"]
    assert os.listdir(there / "weights") == ["a.bin"]


@pytest.mark.skipif(os.name == "nt", reason="a colon is no letter of a file's name there")
def test_a_file_of_external_buffers_may_have_a_colon_in_its_name_where_the_system_has_no_drives(external: Path) -> None:
    root = Model.open(external).root
    root.external_buffer_groups[0].name = "weights/a:b.bin"
    (external.parent / "weights" / "a:b.bin").write_bytes(b"5678")
    external.write_bytes(Model(root).to_bytes())
    assert Model.open(external).external_buffer(1).tobytes() == b"5678"


def test_another_models_files_are_not_overwritten(external: Path, tmp_path: Path) -> None:
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "a.bin").write_bytes(b"else")
    with pytest.raises(ModelError, match="holds something else"):
        Model.open(external).save(tmp_path / "m.tflite")
    assert not (tmp_path / "m.tflite").exists()


def test_a_missing_file_of_external_buffers_is_named(external: Path, tmp_path: Path) -> None:
    model = Model.open(external)
    (external.parent / "weights" / "a.bin").unlink()
    (tmp_path / "there").mkdir()
    with pytest.raises(ModelError, match=r"Could not copy '.*a.bin'"):
        model.save(tmp_path / "there" / "m.tflite")


def test_a_model_can_be_saved_over_the_file_that_its_constants_lie_in(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    Model(small(b"x" * 5000)).save(path)
    model = Model.open(path)
    model.root.description = "changed"
    model.save(path)
    assert constants(model)[1] == b"x" * 5000
    assert constants(Model.open(path))[1] == b"x" * 5000
    assert os.listdir(tmp_path) == ["m.tflite"]


def test_a_folder_that_is_not_there_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="Could not write '.*nowhere.*': No such file or directory"):
        Model(small()).save(tmp_path / "nowhere" / "m.tflite")
