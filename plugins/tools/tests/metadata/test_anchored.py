"""Boxes that a model does not decode itself are decoded by the anchors in its metadata, and selected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from oplet import Model, ModelBuilder
from oplet.schema.encode import encode
from oplet_tools.metadata.anchored import (
    FixedAnchor,
    FixedAnchorsSchema,
    ObjectDetectorOptions,
    SsdAnchorsOptions,
    TensorsDecodingOptions,
    apart,
)
from oplet_tools.metadata.tables import (
    AssociatedFile,
    AssociatedFileType,
    CustomMetadata,
    ModelMetadata,
    ProcessUnit,
    ScoreThresholdingOptions,
    SubGraphMetadata,
    TensorMetadata,
)
from oplet_tools.metadata.writing import with_metadata

#: y, x, height and width. The second box overlaps with the first by 0.5, the third by 0.25, the fourth is turned around.
ANCHORS = [[0.5, 0.5, 0.4, 0.2], [0.5, 0.5, 0.4, 0.2], [0.5, 0.5, 0.4, 0.2], [0.2, 0.2, -0.1, 0.1]]
CODES = [[0, 0, 0, 0], [0, 1, 0, np.log(2)], [0, 6, 0, 0], [0, 0, 0, 0]]
SCORES = [[0.1, 2.0], [1.5, 0.0], [-1.0, -0.5], [3.0, 0.0]]


def model(path: Path, least: float = 0.25, swapped: bool = False, **changes: Any) -> Path:
    """Write a model that gives these codes and scores for every picture of 4 x 4."""
    builder = ModelBuilder()
    main = builder.add_subgraph()
    image = main.add_tensor("image", "float32", [1, 4, 4, 3])
    outputs = []
    for name, values in (("codes", CODES), ("scores", SCORES)):
        half = main.add_tensor(f"half {name}", "float32", [1, 4, len(values[0])], data=np.array([values], np.float32) / 2)
        outputs.append(main.add_tensor(name, "float32", [1, 4, len(values[0])]))
        main.add_operator("ADD", [half, half], [outputs[-1]])
    main.set_inputs(image)
    order = [1, 0] if swapped else [0, 1]
    main.set_outputs(*(outputs[place] for place in order))
    decoding = {
        "num_classes": 2,
        "num_boxes": 4,
        "num_coords": 4,
        "num_values_per_keypoint": 2,
        "sigmoid_score": True,
        "x_scale": 10.0,
        "y_scale": 10.0,
        "w_scale": 1.0,
        "h_scale": 1.0,
        "apply_exponential_on_box_size": True,
    }
    fixed = [FixedAnchor(y_center=y, x_center=x, height=h, width=w) for y, x, h, w in ANCHORS]
    options = ObjectDetectorOptions(
        ssd_anchors_options=SsdAnchorsOptions(fixed_anchors_schema=FixedAnchorsSchema(anchors=fixed)),
        tensors_decoding_options=TensorsDecodingOptions(**{**decoding, **changes}),
    )
    custom = CustomMetadata(name="DETECTOR_METADATA", data=np.frombuffer(encode(options, b"V001"), np.uint8))
    said = [
        TensorMetadata(name="location"),
        TensorMetadata(
            name="score",
            process_units=[ProcessUnit(options=ScoreThresholdingOptions(global_score_threshold=least))],
            associated_files=[AssociatedFile(name="labels.txt", type=AssociatedFileType.TENSOR_AXIS_LABELS)],
        ),
    ]
    graph = SubGraphMetadata(
        input_tensor_metadata=[TensorMetadata()],
        output_tensor_metadata=[said[place] for place in order],
        custom_metadata=[custom],
    )
    tables = ModelMetadata(subgraph_metadata=[graph])
    content = with_metadata(Model.from_bytes(builder.to_bytes()), tables=tables, files={"labels.txt": "cat\ndog\n"})
    path.write_bytes(content)
    return path


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "folder" / "p.png"
    path.parent.mkdir()
    Image.new("RGB", (100, 50)).save(path)
    return path


def objects(ran: Any) -> list[tuple[str, float, list[float]]]:
    """Label, score and box of each object."""
    assert ran.code == 0, ran.err
    return [(each["label"], each["score"], each["box"]) for each in json.loads(ran.out)["objects"]["found"]]


def logistic(value: float) -> Any:
    return pytest.approx(1 / (1 + np.exp(-value)), abs=1e-6)


@pytest.mark.parametrize("swapped", [False, True])
def test_boxes_are_decoded_and_those_that_overlap_too_much_left_out(oplet, tmp_path: Path, picture: Path, swapped: bool) -> None:
    path = model(tmp_path / "m.tflite", swapped=swapped)
    told = objects(ran := oplet("run", path, "-i", picture, "--json"))
    assert told == [
        ("dog", logistic(2.0), pytest.approx([40, 15, 60, 35], abs=1e-4)),
        ("dog", logistic(-0.5), pytest.approx([52, 15, 72, 35], abs=1e-4)),
    ]
    assert "objects that overlap by 0.3 at most, below 0.25 left out, as MediaPipe does" in ran.err
    rows = oplet("run", path, "-i", picture.parent)
    assert [each["label"] for each in json.loads(rows.out)["objects"]["found"]] == ["dog", "dog"]


def test_numbers_are_taken_as_the_metadata_have_them(oplet, tmp_path: Path, picture: Path) -> None:
    changes = {"sigmoid_score": False, "apply_exponential_on_box_size": False, "w_scale": 0.5, "x_scale": 4.0}
    path = model(tmp_path / "m.tflite", least=1.0, **changes)
    # Sizes are 0 but for the second's width, which is log(2) / 0.5 of 0.2; the last box, of no size, lies elsewhere.
    wide = 0.2 * np.log(2) / 0.5 * 100
    assert objects(oplet("run", path, "-i", picture, "--json")) == [
        ("cat", 3.0, pytest.approx([20, 10, 20, 10], abs=1e-4)),
        ("dog", 2.0, pytest.approx([50, 25, 50, 25], abs=1e-4)),
        ("cat", 1.5, pytest.approx([55 - wide / 2, 25, 55 + wide / 2, 25], abs=1e-4)),
    ]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"num_classes": 3}, "has 4 anchors for boxes of shape [1, 4, 4] with scores of shape [1, 4, 2], which it does not fit"),
        ({"num_coords": 6}, "which it does not fit"),
        ({"w_scale": 0.0}, "gives no usable numbers for boxes, so that no objects are shown"),
    ],
)
def test_metadata_that_do_not_fit_are_told_and_no_objects_shown(
    oplet, tmp_path: Path, picture: Path, changes: dict[str, Any], words: str
) -> None:
    path = model(tmp_path / "m.tflite", **changes)
    ran = oplet("run", path, "-i", picture, "--json")
    assert ran.code == 0
    assert words in ran.err
    assert "objects" not in json.loads(ran.out)


def test_of_very_many_boxes_the_best_thousand_stay() -> None:
    left = np.arange(3000.0) * 2
    boxes = np.stack([left, left, left + 1, left + 1], 1)
    assert apart(boxes) == list(range(1000))
