"""MediaPipe gives its models the pixels that `oplet run` gives them, and finds with them what `oplet run` finds.

A model that hands its picture on as an embedding tells the pixels. The environment is that of `test_programs`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.programs import mediapipe_models as models

from oplet import Model, ModelBuilder
from oplet_tools.metadata.tables import (
    ColorSpaceType,
    Content,
    ImageProperties,
    ModelMetadata,
    NormalizationOptions,
    ProcessUnit,
    ScoreTransformationType,
    SubGraphMetadata,
    TensorMetadata,
)
from oplet_tools.metadata.writing import with_metadata

PYTHON = os.environ.get("OPLET_PROGRAMS", "")
CHILD = Path(__file__).with_name("mediapipe_child.py")

pytestmark = [
    pytest.mark.environment,
    pytest.mark.skipif(not PYTHON, reason="sh scripts/programs.sh FOLDER, then set OPLET_PROGRAMS"),
]


def embedder(height: int, width: int, mean: float, std: float) -> bytes:
    """A model that gives its picture as one vector."""
    builder = ModelBuilder()
    main = builder.add_subgraph("main")
    shape = np.array([1, height * width * 3], np.int32)
    image = main.add_tensor("image", "float32", [1, height, width, 3])
    flat = main.add_tensor("embedding", "float32", shape.tolist())
    main.add_operator("RESHAPE", [image, main.add_tensor("shape", "int32", [2], data=shape)], [flat])
    main.set_inputs(image)
    main.set_outputs(flat)
    units = [ProcessUnit(options=NormalizationOptions(mean=[mean], std=[std]))]
    into = TensorMetadata(
        name="image", content=Content(content_properties=ImageProperties(color_space=ColorSpaceType.RGB)), process_units=units
    )
    graph = SubGraphMetadata(input_tensor_metadata=[into], output_tensor_metadata=[TensorMetadata(name="embedding")])
    return with_metadata(Model.from_bytes(builder.to_bytes()), tables=ModelMetadata(name="picture", subgraph_metadata=[graph]))


@pytest.mark.parametrize("size", [(64, 64), (260, 300), (130, 182), (31, 200)])
@pytest.mark.parametrize(("mean", "std"), [(0, 1), (127.5, 127.5)])
def test_mediapipe_s_pixels_are_those_of_oplet_run(size: tuple[int, int], mean: float, std: float, tmp_path: Path) -> None:
    picture, model = tmp_path / "p.png", tmp_path / "m.tflite"
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (130, 182, 3)).astype(np.uint8)).save(picture)
    model.write_bytes(embedder(*size, mean, std))
    theirs = printed([PYTHON, CHILD, "embed", model, picture])
    printed([sys.executable, "-m", "oplet", "run", model, "-i", picture, "-o", tmp_path / "ours.npz", "--json"])
    with np.load(tmp_path / "ours.npz") as ours:
        assert np.abs(ours["embedding"][0] - np.array(theirs)).max() <= 1e-6


def printed(command: list[Any]) -> Any:
    """What a command prints as JSON."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def answers(
    task: str, content: bytes, folder: Path, locale: str, threshold: float | None = None
) -> tuple[list[Any], dict[str, Any]]:
    """What MediaPipe and `oplet run` say of a picture of some soft spots."""
    picture, model = folder / "p.png", folder / "m.tflite"
    spots = np.random.default_rng(2).integers(0, 256, (9, 12, 3)).astype(np.uint8)
    Image.fromarray(spots).resize((182, 130)).save(picture)
    model.write_bytes(content)
    language = ["--locale", locale] if locale else []
    ours = printed([sys.executable, "-m", "oplet", "run", model, "-i", picture, "--json", *language])
    return printed([PYTHON, CHILD, task, model, picture, locale, str(threshold or 0)]), ours


RULES = [(None, None, ""), (0.05, None, "de"), *((0.01, transformation, "") for transformation in ScoreTransformationType)]


@pytest.mark.parametrize("quantized", [False, True])
@pytest.mark.parametrize(("threshold", "calibration", "locale"), RULES)
def test_a_classifier_has_mediapipe_s_labels_and_scores(
    quantized: bool, threshold: float | None, calibration: ScoreTransformationType | None, locale: str, tmp_path: Path
) -> None:
    theirs, told = answers("classify", models.classifier(quantized, threshold, calibration), tmp_path, locale)
    [ours] = told["top"].values()
    assert len(theirs) > 1
    assert [(each["index"], each["label"]) for each in ours] == [(i, shown or label) for i, label, shown, _ in theirs[:5]]
    for one, (*_, score) in zip(ours, theirs):
        assert one["value"] == pytest.approx(score, abs=1e-6)  # convolutions of float32 sum in another order


@pytest.mark.parametrize(
    ("order", "threshold", "calibration", "locale"),
    [
        ([1, 0, 3, 2], 0.999, None, "de"),
        ([1, 0, 3, 2], 0.5, ScoreTransformationType.IDENTITY, ""),
        ([1, 0, 3, 2], None, ScoreTransformationType.LOG, ""),
        ([1, 0, 3, 2], None, ScoreTransformationType.INVERSE_LOGISTIC, ""),
        ([0, 1, 2, 3], None, None, ""),
        ([3, 0, 1, 2], None, None, ""),
        (None, None, None, ""),
    ],
)
def test_a_detector_has_mediapipe_s_labels_scores_and_boxes(
    order: list[int] | None, threshold: float | None, calibration: ScoreTransformationType | None, locale: str, tmp_path: Path
) -> None:
    content = models.detector(order, threshold, calibration, swapped=bool(locale))
    compare_objects(*answers("detect", content, tmp_path, locale, threshold), empty=order == [3, 0, 1, 2])


@pytest.mark.parametrize(
    ("threshold", "sigmoid", "exponential", "locale"), [(None, True, True, ""), (0.9, True, False, "de"), (0.6, False, True, "")]
)
def test_boxes_that_a_detector_does_not_decode_are_decoded_and_selected_as_mediapipe_does(
    threshold: float | None, sigmoid: bool, exponential: bool, locale: str, tmp_path: Path
) -> None:
    content = models.raw_detector(threshold, sigmoid, exponential, swapped=bool(locale))
    compare_objects(*answers("detect", content, tmp_path, locale, threshold))


def compare_objects(theirs: list[Any], told: dict[str, Any], empty: bool = False) -> None:
    """MediaPipe leaves the order of scores that it calibrates as it was, and cuts numbers of boxes off, each within the picture."""
    ours = told["objects"]["found"]
    assert told["objects"]["unit"] == "pixels"
    assert len(ours) == len(theirs)
    assert (not ours) == empty
    for one, (label, shown, score, box) in zip(ours, sorted(theirs, key=lambda each: -each[2])):
        left, top, right, bottom = one["box"]
        assert one["label"] == (shown or label)
        assert one["score"] == pytest.approx(score, abs=1e-6)  # convolutions of float32 sum in another order
        within = [min(max(side, 0), most) for side, most in zip((left, top, right - left, bottom - top), (182, 130) * 2)]
        assert np.abs(np.array(within) - np.array(box) - 0.5).max() <= 0.5 + 1e-3
