"""Metadata that are written read back equal, by oplet and by the FlatBuffers library, and what does not fit a model is refused."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import flatbuffers
import numpy as np
import pytest
from flatbuffers.table import Table as Raw
from plugins.tools.tests.running_many.attached import archive, classifier, metadata
from tests.places import SHARED

from oplet import Interpreter, Model
from oplet.errors import ModelError
from oplet.schema.decode import decode
from oplet.schema.encode import encode
from oplet_tools.metadata import tables
from oplet_tools.metadata.reading import from_dict, read_metadata, to_dict
from oplet_tools.metadata.tables import (
    IDENTIFIER,
    AssociatedFile,
    AssociatedFileType,
    BoundingBoxProperties,
    BoundingBoxType,
    Content,
    CustomMetadata,
    ImageProperties,
    ImageSize,
    ModelMetadata,
    NormalizationOptions,
    ProcessUnit,
    RegexTokenizerOptions,
    ScoreThresholdingOptions,
    SubGraphMetadata,
    TensorGroup,
    TensorMetadata,
)
from oplet_tools.metadata.writing import with_metadata, write_metadata

LABELS = AssociatedFile(name="labels.txt", type=AssociatedFileType.TENSOR_AXIS_LABELS, locale="en")


def full() -> ModelMetadata:
    """Metadata with something in most tables."""
    picture = TensorMetadata(
        name="image",
        dimension_names=["batch", "rows", "columns", "Kanäle"],
        content=Content(
            content_properties=ImageProperties(color_space=tables.ColorSpaceType.RGB, default_size=ImageSize(width=3, height=2))
        ),
        process_units=[ProcessUnit(options=NormalizationOptions(mean=[1.5], std=[0.1]))],
    )
    scores = TensorMetadata(
        name="scores",
        content=Content(content_properties=BoundingBoxProperties(index=[1, 0, 3, 2], type=BoundingBoxType.CENTER)),
        process_units=[ProcessUnit(options=ScoreThresholdingOptions(global_score_threshold=0.25))],
        associated_files=[LABELS],
    )
    tokens = RegexTokenizerOptions(delim_regex_pattern=r"\W+", vocab_file=[AssociatedFile(name="vocab.txt", type=5)])
    graph = SubGraphMetadata(
        input_tensor_metadata=[picture],
        output_tensor_metadata=[scores],
        input_process_units=[ProcessUnit(options=tokens)],
        output_tensor_groups=[TensorGroup(name="all", tensor_names=["scores", ""])],
        custom_metadata=[CustomMetadata(name="X", data=np.arange(40, dtype=np.uint8))],
    )
    return ModelMetadata(name="colours", version="v1", author="me", subgraph_metadata=[graph])


def test_all_tables_read_back_equal_and_as_json() -> None:
    said = full()
    read = decode(ModelMetadata, memoryview(encode(said, IDENTIFIER)), "it")
    assert read == decode(ModelMetadata, memoryview(encode(read, IDENTIFIER)), "it")
    told = json.loads(json.dumps(to_dict(read)))
    assert to_dict(from_dict(ModelMetadata, told)) == told
    graph = told["subgraph_metadata"][0]
    assert graph["input_tensor_metadata"][0]["process_units"] == [
        {"options_type": "NormalizationOptions", "options": {"mean": [1.5], "std": [0.1]}}
    ]
    assert graph["input_tensor_metadata"][0]["dimension_names"] == ["batch", "rows", "columns", "Kanäle"]
    assert graph["output_tensor_metadata"][0]["associated_files"] == [
        {"name": "labels.txt", "type": "TENSOR_AXIS_LABELS", "locale": "en"}
    ]
    assert graph["output_tensor_groups"] == [{"name": "all", "tensor_names": ["scores", ""]}]
    assert decode(ModelMetadata, memoryview(encode(from_dict(ModelMetadata, told), IDENTIFIER)), "it") == read


def test_the_flatbuffers_library_reads_what_is_written() -> None:
    data = encode(full(), IDENTIFIER)
    assert data[4:8] == b"M001"

    def at(table: Raw, slot: int) -> int:
        return int(table.Offset(4 + 2 * slot))

    def first(table: Raw, slot: int) -> Raw:
        return Raw(data, table.Indirect(table.Vector(at(table, slot))))

    root = Raw(data, flatbuffers.encode.Get(flatbuffers.packer.uoffset, data, 0))
    picture = first(first(root, 3), 2)
    names = at(picture, 2)
    assert picture.VectorLen(names) == 4
    texts = [picture.String(picture.Vector(names) + 4 * place) for place in range(4)]
    assert [text.decode() for text in texts] == ["batch", "rows", "columns", "Kanäle"]
    assert root.String(root.Pos + at(root, 0)) == b"colours"


@pytest.mark.parametrize("place", range(0, 700, 7))
def test_damaged_metadata_are_an_error_or_read(place: int) -> None:
    data = bytearray(encode(full(), IDENTIFIER))
    for byte in (0, 1, 0x7F, 0xFF):
        damaged = bytearray(data)
        damaged[place % len(data)] = byte
        try:
            read = decode(ModelMetadata, memoryview(bytes(damaged)), "it")
        except ModelError:
            continue
        to_dict(read)


def test_what_is_written_into_a_model_reads_back_and_the_model_runs_as_before(tmp_path: Path) -> None:
    source, target = tmp_path / "m.tflite", tmp_path / "out.tflite"
    source.write_bytes(classifier(None))
    write_metadata(source, target, tables=full(), files={"labels.txt": "röt\ngrün\nblau\n", "vocab.txt": b"a\nb\n"})
    read = read_metadata(target)
    assert read.tables is not None
    assert read.tables.name == "colours"
    assert read.tables.min_parser_version == "1.5.0"
    assert [(file.name, file.bytes) for file in read.files] == [("labels.txt", 16), ("vocab.txt", 4)]
    assert read.text("labels.txt").splitlines() == ["röt", "grün", "blau"]
    assert read.inputs()[0].name == "image"
    assert zipfile.ZipFile(target).namelist() == ["labels.txt", "vocab.txt"]  # what other readers see
    assert {each.compress_type for each in zipfile.ZipFile(target).infolist()} == {zipfile.ZIP_STORED}
    results = []
    for path in (source, target):
        interpreter = Interpreter(str(path))
        interpreter.allocate_tensors()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.arange(12, dtype=np.float32).reshape(1, 2, 2, 3))
        interpreter.invoke()
        results.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).tolist())
    assert results[0] == results[1]


def test_files_are_kept_replaced_and_removed_and_equal_metadata_give_equal_bytes(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(classifier(metadata(), archive({"labels.txt": b"a\nb\nc\n", "old.txt": b"old"})))
    write_metadata(path, path, files={"new.txt": "new"}, removed=["old.txt"])
    read = read_metadata(path)
    assert [file.name for file in read.files] == ["labels.txt", "new.txt"]
    assert read.tables is not None
    first = path.read_bytes()
    write_metadata(path, path, files={"new.txt": "new"})
    assert path.read_bytes() == first
    write_metadata(path, path, tables=read.as_dict()["tflite_metadata"])
    again = read_metadata(path)
    assert again.outputs() == read.outputs()
    with pytest.raises(ModelError, match=r"has no attached file 'old.txt' to remove; it has 'labels.txt', 'new.txt'"):
        write_metadata(path, path, removed=["old.txt"])


def test_ultralytics_metadata_are_written_and_read() -> None:
    said = {"task": "detect", "names": {0: "cat", 2: "dog"}, "imgsz": [320, 640], "stride": 32}
    model = Model.from_bytes(with_metadata(Model.from_bytes(classifier(None)), ultralytics=said))
    found = read_metadata(model).ultralytics
    assert found is not None
    assert (found.file, found.task, found.names, found.size) == ("metadata.json", "detect", ("cat", "", "dog"), (320, 640))
    older = Model.from_bytes(classifier(None, archive({"temp.txt": b"{'stride': 32, 'names': ['a', 'b']}"})))
    found = read_metadata(older).ultralytics
    assert found is not None
    assert (found.names, found.task, found.size) == (("a", "b"), "", None)
    assert read_metadata(Model.from_bytes(classifier(None, archive({"temp.txt": b"notes"})))).ultralytics is None
    with pytest.raises(ModelError, match=r"'metadata.json' attached to the model .* cannot be read"):
        _ = read_metadata(Model.from_bytes(classifier(None, archive({"metadata.json": b"[1"})))).ultralytics


@pytest.mark.parametrize(
    "value", ["b'x'", "{1}", "1j", "...", "{(1, 2): 3}", "{b'x': 1}", f"0x{'f' * 5000}", f"{{0x{'f' * 5000}: 1}}"]
)
def test_older_metadata_of_ultralytics_that_json_cannot_hold_are_somebody_else_s(value: str) -> None:
    for said in (f"{{'names': ['a'], 'x': {value}}}", f"{{{value.strip('{}').partition(':')[0]}: 1, 'names': []}}"):
        model = Model.from_bytes(classifier(None, archive({"temp.txt": said.encode()})))
        json.dumps(read_metadata(model).as_dict())
        assert read_metadata(model).ultralytics is None or "x" not in said


def test_what_does_not_fit_is_refused_in_a_sentence() -> None:
    model = Model.from_bytes(classifier(None))
    two = SubGraphMetadata(input_tensor_metadata=[TensorMetadata(), TensorMetadata()])
    for said, words in (
        (full(), "name the file 'labels.txt', which is not attached"),
        (ModelMetadata(subgraph_metadata=[two]), "describe 2 inputs of subgraph 0 and .* has 1; describe each"),
        (ModelMetadata(subgraph_metadata=[SubGraphMetadata()] * 2), "describe 2 subgraphs and .* has 1"),
        ({"nmae": "x"}, "ModelMetadata of the metadata has no field 'nmae'; its fields are name, description"),
        ({"name": 1}, r"ModelMetadata.name of the metadata is 1; give a text"),
        ({"subgraph_metadata": [{"associated_files": [{"type": "LABELS"}]}]}, "give one of UNKNOWN, DESCRIPTIONS"),
        (
            {"subgraph_metadata": [{"input_process_units": [{"options": {}}]}]},
            "options_type of the metadata is None; give one of",
        ),
        (
            {"subgraph_metadata": [{"input_tensor_groups": [{"tensor_names": "x"}]}]},
            "tensor_names of the metadata is 'x'; give a list",
        ),
    ):
        with pytest.raises(ModelError, match=words):
            with_metadata(model, tables=said)
    with pytest.raises(ModelError, match=r"has no attached file 'x'; it has none"):
        read_metadata(model).content("x")


@pytest.mark.skipif(not (SHARED / "conformance").exists(), reason="the models lie outside the project")
def test_metadata_of_mediapipe_s_models_read_as_they_are_and_come_back_the_same() -> None:
    seen = {}
    with zipfile.ZipFile(SHARED / "conformance" / "real" / "mediapipe.zip") as models:
        for name in models.namelist():
            if name.endswith(".tflite"):
                data = models.read(name)
                read = read_metadata(Model.from_bytes(data))
                seen[name.partition("/")[0]] = read
                if read.tables is not None:
                    written = read_metadata(Model.from_bytes(with_metadata(read.model, tables=read.as_dict()["tflite_metadata"])))
                    assert written.as_dict() == read.as_dict(), name
                    assert {file.name: written.content(file.name) for file in written.files} == {
                        entry.filename: zipfile.ZipFile(io.BytesIO(data)).read(entry)
                        for entry in zipfile.ZipFile(io.BytesIO(data)).infolist()
                    }
    assert len([read for read in seen.values() if read.tables is not None]) == 7
    hand = seen["mp_hand_landmark_lite"]
    assert hand.text("handedness.txt").split() == ["Left", "Right"]
    assert hand.subgraph().output_tensor_groups == [
        TensorGroup(name="detection_result", tensor_names=["landmarks", "presense score", "handedness", "world landmarks"])
    ]
    segmenter = seen["mp_selfie_segmentation"].subgraph().custom_metadata
    assert segmenter is not None
    assert [each.name for each in segmenter] == ["SEGMENTER_METADATA"]
