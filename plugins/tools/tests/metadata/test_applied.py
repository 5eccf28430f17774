"""What metadata say is done by `oplet run`, to one picture and to folders alike, told, and left out where it cannot be so."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from plugins.tools.tests.running_many.attached import archive, classifier

from oplet import Model, ModelBuilder
from oplet.schema.tables import QuantizationParameters
from oplet_tools.metadata.scores import score_rules_of
from oplet_tools.metadata.tables import (
    AssociatedFile,
    BoundingBoxProperties,
    ColorSpaceType,
    Content,
    CoordinateType,
    ImageProperties,
    ImageSize,
    ModelMetadata,
    NormalizationOptions,
    ProcessUnit,
    ScoreCalibrationOptions,
    ScoreThresholdingOptions,
    SubGraphMetadata,
    TensorMetadata,
)
from oplet_tools.metadata.writing import with_metadata

AXIS, VALUE, CALIBRATION = 2, 3, 4


def written(
    path: Path,
    model: bytes,
    into: TensorMetadata | None = None,
    out: Sequence[TensorMetadata] = (TensorMetadata(),),
    files: dict[str, str] | None = None,
    ultralytics: dict[str, Any] | None = None,
) -> Path:
    """Write a model of one input with metadata."""
    graph = SubGraphMetadata(input_tensor_metadata=[into or TensorMetadata()], output_tensor_metadata=list(out))
    tables = None if ultralytics is not None else ModelMetadata(subgraph_metadata=[graph])
    path.write_bytes(with_metadata(Model.from_bytes(model), tables=tables, files=files, ultralytics=ultralytics))
    return path


def picture_model(
    type: str, shape: Sequence[int], scale: float = 0, zero_point: int = 0, signature: Sequence[int] | None = None
) -> bytes:
    """A model that gives a picture as it takes it."""
    builder = ModelBuilder()
    main = builder.add_subgraph()
    quantization = (
        {"quantization": QuantizationParameters(scale=np.array([scale], np.float32), zero_point=np.array([zero_point]))}
        if scale
        else {}
    )
    signed = {"shape_signature": list(signature)} if signature is not None else {}
    tensors = [main.add_tensor(name, type, list(shape), **quantization, **signed) for name in ("image", "same")]
    order = main.add_tensor("order", "int32", [4], data=np.arange(4, dtype=np.int32))
    main.add_operator("TRANSPOSE", [tensors[0], order], [tensors[1]])
    main.set_inputs(tensors[0])
    main.set_outputs(tensors[1])
    return builder.to_bytes()


def detector(boxes: Sequence[Sequence[float]], classes: Sequence[float], scores: Sequence[float], number: float) -> bytes:
    """A model that finds the same objects in every picture of 4 x 4."""
    builder = ModelBuilder()
    main = builder.add_subgraph()
    image = main.add_tensor("image", "float32", [1, 4, 4, 3])
    outputs = []
    for name, values in (("boxes", [boxes]), ("classes", [classes]), ("scores", [scores]), ("count", [number])):
        array = np.array(values, np.float32)
        constant = main.add_tensor(f"{name} found", "float32", list(array.shape), data=array)
        outputs.append(main.add_tensor(name, "float32", list(array.shape)))
        main.add_operator("ADD", [constant, constant], [outputs[-1]])
    main.set_inputs(image)
    main.set_outputs(*outputs)
    return builder.to_bytes()


@pytest.fixture
def red(tmp_path: Path) -> Path:
    path = tmp_path / "red.png"
    Image.new("RGB", (2, 2), (200, 2, 1)).save(path)
    return path


def as_json(ran: Any) -> dict[str, Any]:
    assert ran.code == 0, ran.err
    told: dict[str, Any] = json.loads(ran.out)
    return told


def labels(name: str, locale: str = "", kind: int = AXIS) -> AssociatedFile:
    return AssociatedFile(name=name, type=kind, locale=locale or None)


THREE = {"labels.txt": "red\ngreen\nblue\n", "de.txt": "rot\ngrün\nblau\n", "en-GB.txt": "crimson\nlime\nnavy\n"}


def test_one_picture_has_the_labels_that_a_folder_has_and_the_language_that_is_asked_for(
    oplet, tmp_path: Path, red: Path
) -> None:
    files = [labels("labels.txt"), labels("de.txt", "de"), labels("en-GB.txt", "en-GB")]
    model = written(tmp_path / "m.tflite", classifier(None), out=[TensorMetadata(associated_files=files)], files=THREE)
    (tmp_path / "folder").mkdir()
    red.rename(tmp_path / "folder" / "red.png")
    red = tmp_path / "folder" / "red.png"
    for locale, best, warned in (("", "red", 0), ("de", "rot", 0), ("en", "crimson", 0), ("DE_at", "rot", 0), ("fr", "red", 1)):
        options = ["--locale", locale] if locale else []
        for source in (red, red.parent):
            ran = oplet("run", model, "-i", source, "--json", *options)
            assert as_json(ran)["top"]["scores"][0]["label"] == best
            assert "output 'scores': labels of '" in ran.err
            assert (
                ran.err.count("there are no labels for the language 'fr'; the languages are 'de', 'en-GB'; 'labels.txt' is taken")
                == warned
            )
    ran = oplet("run", model, "-i", red)
    assert "scores: the highest" in ran.out
    assert "red" in ran.out
    (tmp_path / "mine.txt").write_text("a\nb\nc\n")
    ran = oplet("run", model, "-i", red, "--json", "--labels", tmp_path / "mine.txt")
    assert as_json(ran)["top"]["scores"][0]["label"] == "a"
    assert "labels of" not in ran.err


def test_scores_below_the_threshold_are_left_out_and_told(oplet, tmp_path: Path, red: Path) -> None:
    said = TensorMetadata(
        associated_files=[labels("labels.txt")],
        process_units=[ProcessUnit(options=ScoreThresholdingOptions(global_score_threshold=0.005))],
    )
    model = written(tmp_path / "m.tflite", classifier(None), out=[said], files=THREE)
    ran = oplet("run", model, "-i", red, "--json")
    assert [score["label"] for score in as_json(ran)["top"]["scores"]] == ["red", "green"]
    assert "output 'scores': scores below 0.005 left out, as the model's metadata say" in ran.err
    (tmp_path / "many").mkdir()
    red.rename(tmp_path / "many" / "red.png")
    for suffix in ("jsonl", "csv"):
        ran = oplet("run", model, "-i", tmp_path / "many", "-o", tmp_path / f"r.{suffix}")
        assert ran.code == 0, ran.err
    [line] = (tmp_path / "r.jsonl").read_text().splitlines()
    assert [score["label"] for score in json.loads(line)["top"]["scores"]] == ["red", "green"]
    head, row = (tmp_path / "r.csv").read_text().splitlines()
    assert row.endswith(",,,,")
    assert head.count(",") == row.count(",")


def test_a_score_that_equals_the_threshold_in_float32_stays(oplet, tmp_path: Path, red: Path) -> None:
    units = [ProcessUnit(options=ScoreThresholdingOptions(global_score_threshold=float(np.float32(0.7))))]
    out = [TensorMetadata(), TensorMetadata(), TensorMetadata(process_units=units), TensorMetadata()]
    model = written(tmp_path / "m.tflite", detector(BOXES, [1, 0.5, 0], [0.35, 0.34999, 0.4], 1.5), out=out)
    told = as_json(oplet("run", model, "-i", red, "--json", "--top", "3"))
    assert [each["index"] for each in told["top"]["scores"]] == [2, 0]


def test_boxes_whose_sides_are_turned_around_are_none_and_a_calibration_goes_by_classes(oplet, tmp_path: Path) -> None:
    boxes = [[0.2, 0.1, 0.1, 0.25], [0.1, 0.1, 0.3, 0.2]]  # the right side of the first is left of its left one
    out = found([], 1)
    out[2].process_units = [ProcessUnit(options=ScoreCalibrationOptions(default_score=0.25))]
    out[2].associated_files = [labels("calibration.txt", kind=CALIBRATION)]
    files = {**THREE, "calibration.txt": "0.8,0,0\n0.6,0,0\n\n"}
    model = written(tmp_path / "m.tflite", detector(boxes, [0, 0.5], [0.4, 0.4], 1), out=out, files=files)
    Image.new("RGB", (40, 20)).save(tmp_path / "p.png")
    told = as_json(ran := oplet("run", model, "-i", tmp_path / "p.png", "--json"))
    assert [(each["label"], each["score"]) for each in told["objects"]["found"]] == [("green", pytest.approx(0.3))]
    assert ran.err.count("scores calibrated by 'calibration.txt'") == 1
    assert "stay as they are" not in ran.err


@pytest.mark.parametrize("transformation", [0, 1, 2])
def test_scores_are_calibrated_by_the_formula_of_the_schema(tmp_path: Path, transformation: int) -> None:
    options = ScoreCalibrationOptions(score_transformation=transformation, default_score=0.125)
    said = TensorMetadata(
        process_units=[ProcessUnit(options=options)], associated_files=[labels("calibration.csv", kind=CALIBRATION)]
    )
    path = written(
        tmp_path / "m.tflite", classifier(None), out=[said], files={"calibration.csv": "0.9,2,-1\n\n1.5,-3,0.25,0.4\n"}
    )
    rules = score_rules_of(Model.open(path), 0, 0)
    assert rules.calibration is not None

    def g(x: float) -> float:
        return (x, math.log(x), math.log(x) - math.log(1 - x))[transformation]

    for x in (0.05, 0.41, 0.8):
        found = rules.calibration.apply(np.array([x, x, x], np.float64))
        last = 0.125 if x < 0.4 else 1.5 / (1 + math.exp(-(-3 * g(x) + 0.25)))
        assert found == pytest.approx([0.9 / (1 + math.exp(-(2 * g(x) - 1))), 0.125, last], rel=1e-12)
    extremes = rules.calibration.apply(np.array([0.0, 1.0, 1.0]))
    assert np.isfinite(extremes).all()
    assert ((extremes >= 0) & (extremes <= 1.5)).all()
    assert rules.calibration.apply(np.array([0.8, 0.8]), np.array([7, 0]))[0] == 0.125


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"calibration.csv": "1,2\n"}, "line 1 of 'calibration.csv' is no scale"),
        ({"calibration.csv": "1,2,x\n"}, "could not convert"),
        ({"calibration.csv": "1,2,3\n" * 2}, "calibrates 2 scores and 'scores' has 3, so they stay as they are"),
    ],
)
def test_a_calibration_that_cannot_be_is_told_and_scores_stay(
    oplet, tmp_path: Path, red: Path, files: dict[str, str], words: str
) -> None:
    said = TensorMetadata(
        process_units=[ProcessUnit(options=ScoreCalibrationOptions())],
        associated_files=[labels("calibration.csv", kind=CALIBRATION)],
    )
    ran = oplet("run", written(tmp_path / "m.tflite", classifier(None), out=[said], files=files), "-i", red, "--top", 1, "--json")
    assert as_json(ran)["top"]["scores"][0]["value"] == pytest.approx(200 / 255)
    assert words in ran.err


def normalization(mean: Sequence[float], std: Sequence[float]) -> TensorMetadata:
    return TensorMetadata(process_units=[ProcessUnit(options=NormalizationOptions(mean=list(mean), std=list(std)))])


@pytest.mark.parametrize(
    ("type", "scale", "zero_point", "mean", "std", "expected"),
    [
        ("float32", 0, 0, 127.5, 127.5, (200 - 127.5) / 127.5),
        ("uint8", 1 / 128, 128, 127.5, 127.5, 200),  # but for rounding the pixel, which is what MediaPipe gives
        ("uint8", 1 / 64, 100, 127.5, 127.5, round(72.5 / 127.5 * 64) + 100),  # not the pixel: the schema's rule
        ("int8", 1 / 255, -128, 0, 255, 200 - 128),
        ("int8", 1 / 64, 0, 128, 80, round((200 - 128) / 80 * 64)),  # not the whole range: only the metadata know
        ("int8", 0, 0, 128, 1, 72),
        ("int16", 1 / 8192, 0, 127.5, 127.5, round(72.5 / 127.5 * 8192)),
    ],
)
def test_pixels_of_quantized_inputs_are_normalized_then_quantized(
    oplet, tmp_path: Path, red: Path, type: str, scale: float, zero_point: int, mean: float, std: float, expected: float
) -> None:
    model = written(tmp_path / "m.tflite", picture_model(type, [1, 2, 2, 3], scale, zero_point), normalization([mean], [std]))
    told = as_json(ran := oplet("run", model, "-i", red, "--json"))
    if scale:
        expected = (expected - zero_point) * scale
    assert told["outputs"][0]["values"][0][0][0][0] == pytest.approx(expected, rel=1e-6)
    assert f"with mean {mean:g}, std {std:g}, as the model's metadata say" in ran.err


@pytest.mark.parametrize(
    ("type", "scale", "zero_point", "mean", "std"),
    [("uint8", 1 / 255, 0, 127.5, 127.5), ("uint8", 1.0, 0, 0, 255), ("int8", 0, 0, 127.5, 127.5)],
)
def test_a_normalization_that_the_tensor_cannot_hold_is_told_and_left_out(
    oplet, tmp_path: Path, red: Path, type: str, scale: float, zero_point: int, mean: float, std: float
) -> None:
    model = written(tmp_path / "m.tflite", picture_model(type, [1, 2, 2, 3], scale, zero_point), normalization([mean], [std]))
    ran = oplet("run", model, "-i", red, "--json", "--raw")
    assert as_json(ran)["outputs"][0]["values"][0][0][0][0] == (200 if type == "uint8" else 72)
    assert "of the model's metadata left out, as it makes real values" in ran.err


def test_grey_pictures_and_free_sizes_are_as_the_metadata_say(oplet, tmp_path: Path, red: Path) -> None:
    content = ImageProperties(color_space=ColorSpaceType.GRAYSCALE, default_size=ImageSize(width=3, height=5))
    into = TensorMetadata(content=Content(content_properties=content))
    model = written(tmp_path / "m.tflite", picture_model("float32", [1, 1, 1, 3], signature=[1, -1, -1, 3]), into)
    told = as_json(ran := oplet("run", model, "-i", red, "--json"))
    values = np.array(told["outputs"][0]["values"])
    assert values.shape == (1, 5, 3, 3)
    assert np.ptp(values) == 0
    assert "for an input of 3 x 5, as the model's metadata say" in ran.err
    assert "made grey, as the model's metadata say" in ran.err


BOXES = [[0.05, 0.1, 0.2, 0.25], [0, 0.1, 0.1, 0.2], [0, 0, 0.5, 0.5]]  # the model doubles all


def found(order: Sequence[int], kind: int, unit: CoordinateType = CoordinateType.RATIO) -> list[TensorMetadata]:
    boxes = BoundingBoxProperties(index=list(order), type=kind, coordinate_type=unit)
    threshold = ProcessUnit(options=ScoreThresholdingOptions(global_score_threshold=0.5))
    return [
        TensorMetadata(name="location", content=Content(content_properties=boxes)),
        TensorMetadata(name="category", associated_files=[labels("labels.txt", kind=VALUE), labels("de.txt", "de", VALUE)]),
        TensorMetadata(name="score", process_units=[threshold]),
        TensorMetadata(name="number of detections"),
    ]


@pytest.mark.parametrize(
    ("order", "kind", "unit", "box"),
    [
        ([1, 0, 3, 2], 1, CoordinateType.RATIO, [0.2, 0.1, 0.5, 0.4]),  # top, left, bottom, right
        ([], 1, CoordinateType.RATIO, [0.1, 0.2, 0.4, 0.5]),
        ([0, 2, 1, 3], 1, CoordinateType.RATIO, [0.1, 0.4, 0.2, 0.5]),
        ([0, 1, 2, 3], 2, CoordinateType.RATIO, [0.1, 0.2, 0.5, 0.7]),
        ([0, 1, 2, 3], 3, CoordinateType.RATIO, [-0.1, -0.05, 0.3, 0.45]),
        ([], 1, CoordinateType.PIXEL, [0.025, 0.05, 0.1, 0.125]),
    ],
)
def test_objects_have_labels_scores_and_boxes_in_the_picture(
    oplet, tmp_path: Path, order: Sequence[int], kind: int, unit: CoordinateType, box: list[float]
) -> None:
    model = written(
        tmp_path / "m.tflite", detector(BOXES, [1, 0.5, 0], [0.4, 0.45, 0.1], 1.5), out=found(order, kind, unit), files=THREE
    )
    picture = tmp_path / "folder" / "wide.png"
    picture.parent.mkdir()
    Image.new("RGB", (40, 20)).save(picture)
    told = as_json(ran := oplet("run", model, "-i", picture, "--json"))
    assert told["objects"]["unit"] == "pixels"
    assert [(each["label"], each["score"]) for each in told["objects"]["found"]] == [
        ("green", pytest.approx(0.9)),
        ("blue", pytest.approx(0.8)),
    ]
    in_pixels = [number * size for number, size in zip(box, (40, 20, 40, 20))]
    assert told["objects"]["found"][1]["box"] == pytest.approx(in_pixels, abs=1e-5)
    assert "values are numbers of labels of 'labels.txt', as the model's metadata say" in ran.err
    assert "scores below 0.5 left out" in ran.err
    rows = oplet("run", model, "-i", picture.parent)
    assert json.loads(rows.out)["objects"] == told["objects"]
    ran = oplet("run", model, "-i", picture, "--locale", "de")
    assert "objects, in pixels of the picture" in ran.out
    assert "grün" in ran.out
    alone = as_json(oplet("run", model, "--json"))
    assert alone["objects"]["unit"] == "parts"
    assert alone["objects"]["found"][1]["box"] == pytest.approx(box, abs=1e-6)


def yolo(rows: Sequence[Sequence[float]], channels_first: bool) -> bytes:
    """A model that gives `rows`, halved, for every picture of 40 x 40."""
    builder = ModelBuilder()
    main = builder.add_subgraph()
    shape = [1, 3, 40, 40] if channels_first else [1, 40, 40, 3]
    image = main.add_tensor("images", "float32", shape)
    array = np.array([rows], np.float32)
    half = main.add_tensor("half", "float32", list(array.shape), data=array / 2)
    out = main.add_tensor("found", "float32", list(array.shape))
    main.add_operator("ADD", [half, half], [out])
    main.set_inputs(image)
    main.set_outputs(out)
    return builder.to_bytes()


SAID = {"task": "detect", "names": {"0": "cat", "1": "dog"}, "imgsz": [40, 40]}


@pytest.mark.parametrize("channels_first", [False, True])
def test_a_yolo_s_boxes_are_selected_and_lie_in_the_picture_that_was_padded(oplet, tmp_path: Path, channels_first: bool) -> None:
    rows = [
        [0.5, 0.5, 0.2, 0.25, 0.9, 0.1],
        [0.51, 0.5, 0.2, 0.25, 0.8, 0.0],  # overlaps the first
        [0.51, 0.5, 0.2, 0.25, 0.0, 0.7],  # so does this, of another class
        [0.1, 0.5, 0.2, 0.5, 0.3, 0.2],
        [0.1, 0.5, 0.2, 0.5, 0.24, 0.2],
    ]
    model = written(tmp_path / "m.tflite", yolo(np.array(rows).T.tolist(), channels_first), ultralytics=SAID)
    picture = tmp_path / "wide.png"
    Image.new("RGB", (80, 40), (255, 0, 0)).save(picture)
    told = as_json(ran := oplet("run", model, "-i", picture, "--json"))
    found = [(each["label"], round(each["score"], 6), [round(x, 4) for x in each["box"]]) for each in told["objects"]["found"]]
    assert found == [
        ("cat", 0.9, [32, 10, 48, 30]),
        ("dog", 0.7, [32.8, 10, 48.8, 30]),
        ("cat", 0.3, [0, 0, 16, 40]),
    ]
    assert "in the middle of 40 x 40 pixels of 114, as ultralytics' models take pictures" in ran.err
    assert "scores up to 0.25 left out" in ran.err
    stretched = as_json(oplet("run", model, "-i", picture, "--json", "--preprocess", "resize=stretch"))
    assert [round(x, 4) for x in stretched["objects"]["found"][0]["box"]] == [32, 15, 48, 25]


@pytest.mark.parametrize("channels_first", [False, True])
def test_boxes_that_were_selected_inside_are_taken_as_they_are(oplet, tmp_path: Path, channels_first: bool) -> None:
    size = 40 if channels_first else 1
    rows = [[0.1 * size, 0.2 * size, 0.5 * size, 0.6 * size, 0.75, 1], [0, 0, size, size, 0.1, 0]]
    model = written(tmp_path / "m.tflite", yolo(rows, channels_first), ultralytics={**SAID, "end2end": True})
    [only] = as_json(oplet("run", model, "--json"))["objects"]["found"]
    assert (only["label"], only["score"]) == ("dog", 0.75)
    assert only["box"] == pytest.approx([0.1, 0.2, 0.5, 0.6])


def test_a_classifier_of_ultralytics_has_names_and_takes_the_middle_of_pictures(oplet, tmp_path: Path) -> None:
    said = {"task": "classify", "names": {0: "red", 1: "green", 2: "blue"}, "imgsz": [2, 2]}
    model = written(tmp_path / "m.tflite", classifier(None), ultralytics=said)
    pixels = np.zeros((2, 6, 3), np.uint8)
    pixels[:, 2:4] = (1, 200, 2)
    Image.fromarray(pixels).save(tmp_path / "wide.png")
    told = as_json(ran := oplet("run", model, "-i", tmp_path / "wide.png", "--json"))
    assert told["top"]["scores"][0]["label"] == "green"
    assert told["top"]["scores"][0]["value"] == pytest.approx(200 / 255)
    assert "its middle of 2 x 2 resized to 2 x 2, as ultralytics' models take pictures" in ran.err


def test_nothing_of_a_detector_that_a_hostile_model_says_makes_an_error_that_is_none(oplet, tmp_path: Path) -> None:
    for number, classes in ((math.nan, [1, 1, 1]), (1e30, [math.nan, -5, 1e20]), (-3, [0, 0, 0])):
        model = written(tmp_path / "m.tflite", detector(BOXES, classes, [0.4, 0.45, 0.5], number), out=found([], 1), files=THREE)
        assert oplet("run", model, "--json").code == 0
    model = written(
        tmp_path / "m.tflite", detector(BOXES, [0, 0, 0], [0.4, 0.45, 0.5], 3), out=found([0, 0, 9, 3], 1), files=THREE
    )
    ran = oplet("run", model, "--json")
    assert "objects" not in as_json(ran)
    assert "have the order [0, 0, 9, 3], which is none of four numbers" in ran.err
    assert (
        oplet("run", written(tmp_path / "n.tflite", classifier(None, archive({})), ultralytics={"task": 3, "names": 4})).code == 0
    )


def test_inspect_lists_what_is_said_and_attached(oplet, tmp_path: Path) -> None:
    into = normalization([1, 2, 3], [4, 5, 6])
    into.content = Content(content_properties=ImageProperties(color_space=ColorSpaceType.RGB))
    model = written(tmp_path / "m.tflite", detector(BOXES, [1, 1, 1], [1, 1, 1], 1), into, found([1, 0, 3, 2], 1), THREE)
    ran = oplet("inspect", model)
    for words in (
        "picture, RGB",
        "normalization: mean [1, 2, 3], std [4, 5, 6]",
        "boxes: top, left, bottom, right, in parts of the picture's size",
        "scores below 0.5 left out",
        "tensor value labels",
        "de.txt (language de)",
        "attached files",
    ):
        assert words in ran.out, words
    told = as_json(oplet("inspect", model, "--json"))
    assert [file["name"] for file in told["files"]] == ["labels.txt", "de.txt", "en-GB.txt"]
    assert told["tflite_metadata"]["subgraph_metadata"][0]["output_tensor_metadata"][2]["name"] == "score"
    ran = oplet("inspect", written(tmp_path / "n.tflite", classifier(None), ultralytics=SAID))
    assert "ultralytics metadata" in ran.out
    assert "0: cat, 1: dog" in ran.out
    (tmp_path / "damaged.tflite").write_bytes(classifier(b"\xff" * 40, archive({"x": b""})))
    told = as_json(oplet("inspect", tmp_path / "damaged.tflite", "--json"))
    assert told["tflite_metadata"] is None
    assert told["files"] == [{"name": "x", "bytes": 0}]
    assert len(told["metadata_errors"]) == 1
