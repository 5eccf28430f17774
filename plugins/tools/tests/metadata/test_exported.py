"""Objects of ultralytics' models are those of ultralytics' own code: thresholds, overlaps, turned boxes, keypoints, and how pictures are fitted."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from plugins.tools.tests.metadata.test_applied import SAID, picture_model, written, yolo

from oplet_tools.metadata.exported import Exported, exported_as
from oplet_tools.metadata.tables import Content, ImageProperties, NormalizationOptions, ProcessUnit, TensorMetadata
from oplet_tools.metadata.ultralytics import Ultralytics
from oplet_tools.running.pictures import load_picture
from oplet_tools.running.values.picture_rules import PictureRules

SIZE = (40, 80)
#: What MediaPipe needs to know of a picture, whose pixels stay as they are.
IMAGE = TensorMetadata(
    content=Content(content_properties=ImageProperties()),
    process_units=[ProcessUnit(options=NormalizationOptions(mean=[0.0], std=[1.0]))],
)


def told(task: str, **content: Any) -> Ultralytics:
    return Ultralytics("metadata.json", task, ("cat", "dog"), None, content)


def raw(*rows: list[float]) -> np.ndarray[Any, Any]:
    return np.array([rows], np.float32).transpose(0, 2, 1)


@pytest.mark.parametrize(
    ("task", "shape", "content", "expected"),
    [
        ("detect", (1, 6, 100), {}, Exported(2, False, False)),
        ("detect", (1, 300, 6), {}, Exported(2, True, True)),
        ("segment", (1, 38, 100), {}, Exported(2, False, False)),
        ("segment", (1, 20, 20, 32), {}, None),
        ("pose", (1, 57, 100), {"kpt_shape": [17, 3]}, Exported(2, False, False, keypoints=(17, 3))),
        ("pose", (1, 57, 100), {"kpt_shape": [16, 3]}, Exported(2, False, False)),
        ("pose", (1, 57, 100), {"kpt_shape": "many"}, Exported(2, False, False)),
        ("pose", (1, 300, 16), {"kpt_shape": [5, 2], "end2end": True}, Exported(2, True, True, keypoints=(5, 2))),
        ("obb", (1, 7, 100), {}, Exported(2, False, False, turned=True)),
        ("obb", (1, 300, 7), {"end2end": True}, Exported(2, True, True, turned=True)),
        ("obb", (1, 6, 100), {}, None),
        ("classify", (1, 7, 100), {}, None),
    ],
)
def test_an_output_is_read_as_its_task_and_shape_say(
    task: str, shape: tuple[int, ...], content: dict[str, Any], expected: Exported | None
) -> None:
    assert exported_as(told(task, **content), shape, channels_first=True) == expected


def test_a_score_of_the_threshold_is_left_out_as_only_higher_ones_are_taken() -> None:
    found = Exported(2, False, False).read(raw([0.5, 0.5, 0.1, 0.1, 0.25, 0], [0.2, 0.5, 0.1, 0.1, 0, 0.26]), SIZE)
    assert [(each.number, round(each.score, 3)) for each in found] == [(1, 0.26)]


def test_turned_boxes_have_corners_in_pixels_that_are_no_squares_of_parts() -> None:
    [one] = Exported(2, False, False, turned=True).read(raw([0.5, 0.5, 0.5, 0.25, 0.9, 0.1, math.pi / 2]), SIZE)
    # 40 x 10 pixels around (40, 20), turned by a quarter: 10 wide and 40 high.
    in_pixels = np.array(one.points) * [80, 40]
    assert in_pixels == pytest.approx(np.array([[35, 40], [45, 40], [45, 0], [35, 0]]), abs=1e-4)
    assert np.array(one.box) * [80, 40, 80, 40] == pytest.approx([35, 0, 45, 40], abs=1e-4)


def test_a_turned_box_is_left_out_for_any_better_one_that_overlaps_also_one_that_is_left_out_itself() -> None:
    rows = [
        [0.500, 0.5, 0.25, 0.25, 0.9, 0, 0.3],
        [0.530, 0.5, 0.25, 0.25, 0.8, 0, 0.3],  # overlaps the first
        [0.560, 0.5, 0.25, 0.25, 0.7, 0, 0.3],  # overlaps the second alone
        [0.500, 0.5, 0.25, 0.25, 0, 0.6, 0.3],  # of another class
        [0.500, 0.5, 0.25, 0.25, 0.5, 0, 0.3 + math.pi],  # the first, turned by half
        [0.500, 0.5, 0.25, 0.05, 0.4, 0, 0.3],  # much thinner
    ]
    turned = Exported(2, False, False, turned=True).read(raw(*rows), SIZE)
    assert [round(each.score, 3) for each in turned] == [0.9, 0.6, 0.4]
    upright = Exported(2, False, False).read(raw(*(row[:6] for row in rows[:4])), SIZE)
    assert [round(each.score, 3) for each in upright] == [0.9, 0.7, 0.6]


def test_of_sixty_turned_boxes_those_stay_that_ultralytics_keeps() -> None:
    """The places are those of `non_max_suppression(rows, 0.25, 0.7, nc=2, rotated=True)` of ultralytics 8.4.190, in its order."""
    part = np.stack([np.arange(1, 61) * number**0.5 % 1 for number in (2, 3, 5, 7, 11, 13, 17)], 1)
    low, high = np.array([[0.4, 0.4, 0.2, 0.1, 0, 0, -0.3], [0.6, 0.6, 0.35, 0.2, 1, 1, 1.7]])
    rows = (low + part * (high - low)).astype(np.float32)
    best = rows[:, 4:6].max(1).astype(np.float64).tolist()
    found = Exported(2, False, False, turned=True).read(rows.T[np.newaxis], SIZE)
    expected = (
        "59 32 40 21 27 2 22 24 55 17 5 50 12 45 8 7 30 35 11 33 14 25 20 36 15 48 39 10 1 38 23 4 28 26 18 29 13 3 54 16 31 19"
    )
    assert [best.index(each.score) for each in found] == [int(place) for place in expected.split()]


def test_a_box_is_turned_among_the_pixels_of_the_picture_where_sides_shrink_unevenly() -> None:
    """As ultralytics does: width and height become those in the picture first, by the shares of their sides, then the box is turned."""
    row = [0.5, 0.5, 0.5, 0.25, 0.9, 0.1, math.pi / 2]
    [one] = Exported(2, False, False, turned=True).read(raw(row), SIZE, (130, 180))
    # 90 x 32.5 pixels around (90, 65), turned by a quarter.
    assert np.array(one.points) * [180, 130] == pytest.approx(
        np.array([[73.75, 110], [106.25, 110], [106.25, 20], [73.75, 20]]), abs=1e-4
    )
    assert np.array(one.box) * [180, 130, 180, 130] == pytest.approx([73.75, 20, 106.25, 110], abs=1e-4)
    # A model that has selected them itself gives them in pixels of the input.
    row = [40, 20, 40, 10, 0.9, 0, math.pi / 2]
    [selected] = Exported(2, True, True, turned=True).read(np.array([[row]], np.float32), SIZE, (130, 180))
    assert np.array(selected.points) == pytest.approx(np.array(one.points), abs=1e-6)


@pytest.mark.parametrize("task", ["detect", "pose", "obb"])
@pytest.mark.parametrize("selected", [False, True])
def test_numbers_of_a_damaged_model_and_no_objects_are_no_error(task: str, selected: bool) -> None:
    more = {"detect": 0, "pose": 6, "obb": 1}[task]
    shape = (1, 9, 6 + more) if selected else (1, 6 + more, 9)
    how = exported_as(told(task, end2end=selected, kpt_shape=[2, 3]), shape, channels_first=True)
    assert how is not None
    assert how.read(np.zeros(shape, np.float32), SIZE) == []
    for value in (np.nan, np.inf, -np.inf, 3e38):
        for each in how.read(np.full(shape, value, np.float32), SIZE):
            assert np.isfinite([*each.box, *np.ravel(each.points), each.score]).all()


def test_keypoints_lie_in_the_picture_and_nothing_but_turned_boxes_leads_out_of_it(oplet, tmp_path: Path) -> None:
    picture = tmp_path / "wide.png"
    Image.new("RGB", (80, 40), (255, 0, 0)).save(picture)
    row = [0.5, 0.5, 1.5, 0.25, 0.9, 0.1]
    said = {**SAID, "task": "pose", "kpt_shape": [2, 3]}
    model = written(tmp_path / "p.tflite", yolo(raw([*row, 0.25, 0.5, 0.75, 2, 0.1, 0.5])[0].tolist(), False), ultralytics=said)
    ran = oplet("run", model, "-i", picture, "--json")
    [one] = json.loads(ran.out)["objects"]["found"]
    assert one["box"] == pytest.approx([0, 10, 80, 30])
    assert np.array(one["keypoints"]) == pytest.approx(np.array([[20, 20, 0.75], [80, 0, 0.5]]))
    assert oplet("run", model, "-i", picture, "-o", tmp_path / "values.npz").code == 0
    model = written(tmp_path / "o.tflite", yolo(raw([*row, 0.0])[0].tolist(), False), ultralytics={**SAID, "task": "obb"})
    [one] = json.loads(oplet("run", model, "-i", picture, "--json").out)["objects"]["found"]
    assert one["box"] == pytest.approx([-20, 10, 100, 30])
    assert np.array(one["corners"]) == pytest.approx(np.array([[100, 30], [100, 10], [-20, 10], [-20, 30]]))


def loaded(tmp_path: Path, pixels: np.ndarray[Any, Any], height: int, width: int, rules: PictureRules) -> Any:
    Image.fromarray(pixels).save(tmp_path / "p.png")
    shape = [1, height, width, 3]
    details = {
        "name": "x",
        "shape": shape,
        "shape_signature": shape,
        "dtype": np.float32,
        "quantization_parameters": {"scales": np.zeros(0), "zero_points": np.zeros(0), "quantized_dimension": 0},
        "picture_rules": lambda: rules,
    }
    return load_picture(tmp_path / "p.png", details, scale=1)


def test_pictures_of_detectors_are_resized_between_four_pixels_as_opencv_does(tmp_path: Path) -> None:
    rows = np.arange(9, dtype=np.uint8)[:, None, None] * 20
    pixels = np.broadcast_to(rows + np.arange(12, dtype=np.uint8)[None, :, None] * 5, (9, 12, 3)).copy()
    pixels[4, 6] = 255  # between the places that are looked at: an average would have it
    given = loaded(tmp_path, pixels, 3, 4, PictureRules(resize="pad", filter="linear", fill=114))
    # The middles of 3 x 3 pixels: cv2.resize(pixels, (4, 3), interpolation=cv2.INTER_LINEAR)
    assert given.pixels[0, :, :, 0].tolist() == pixels[1::3, 1::3, 0].tolist()
    grown = loaded(tmp_path, pixels[:2, :2], 4, 4, PictureRules(resize="pad", filter="linear"))
    assert grown.pixels[0, :, :, 0].tolist() == [[0, 1, 4, 5], [5, 6, 9, 10], [15, 16, 19, 20], [20, 21, 24, 25]]


def test_resized_pixels_are_opencv_s_to_the_last_bit(tmp_path: Path) -> None:
    """The pixels are those of `cv2.resize(..., interpolation=cv2.INTER_LINEAR)` of OpenCV 4.10 and 5.0, which computes in whole numbers."""
    pixels = (np.arange(7 * 9).reshape(7, 9) ** 2 * 37 % 256).astype(np.uint8)
    rules = PictureRules(resize="stretch", filter="linear")
    smaller = loaded(tmp_path, np.stack([pixels] * 3, 2), 4, 5, rules).pixels[0]
    assert smaller[..., 0].tolist() == [
        [67, 137, 91, 92, 73],
        [138, 193, 242, 75, 126],
        [130, 178, 85, 224, 132],
        [127, 71, 34, 121, 195],
    ]
    assert smaller[..., 1].tolist() == smaller[..., 2].tolist() == smaller[..., 0].tolist()
    larger = loaded(tmp_path, np.stack([pixels] * 3, 2), 9, 12, rules).pixels[0, :, :, 0]
    assert larger[:3].tolist() == [
        [0, 23, 79, 139, 86, 79, 109, 144, 65, 32, 37, 64],
        [121, 101, 106, 136, 160, 124, 103, 108, 106, 44, 61, 153],
        [195, 126, 113, 166, 195, 180, 143, 99, 102, 62, 95, 189],
    ]
    assert larger[8].tolist() == [116, 77, 57, 75, 138, 88, 43, 35, 73, 158, 183, 148]


def test_pictures_of_models_with_metadata_of_images_have_mediapipe_s_pixels_to_the_last_bit(oplet, tmp_path: Path) -> None:
    """The pixels are those of MediaPipe 1.2.3: its ImageEmbedder on a model that reshapes the picture into the embedding."""
    pixels = (np.arange(7 * 9).reshape(7, 9) ** 2 * 37 % 256).astype(np.uint8)
    Image.fromarray(np.stack([pixels] * 3, 2)).save(tmp_path / "p.png")
    smaller = [[0, 127, 79, 114, 29], [204, 164, 204, 98, 86], [87, 159, 134, 143, 54], [159, 87, 25, 122, 211]]
    larger = [
        [0, 28, 93, 130, 77, 79, 119, 131, 52, 29, 43, 64],
        [141, 109, 114, 142, 179, 122, 101, 104, 115, 32, 86, 168],
        [198, 107, 124, 178, 197, 188, 144, 100, 94, 59, 118, 187],
    ]
    for height, width, expected in ((4, 5, smaller), (9, 12, larger)):
        model = written(tmp_path / "m.tflite", picture_model("float32", [1, height, width, 3]), IMAGE)
        ran = oplet("run", model, "-i", tmp_path / "p.png", "-o", tmp_path / "values.npz")
        assert f"resized to {width} x {height}" in ran.err
        assert "between the nearest four pixels, as MediaPipe does" in ran.err
        with np.load(tmp_path / "values.npz") as values:
            given = values["same"][0]
        assert given[: len(expected), :, 0].tolist() == expected
        assert (given == given[..., :1]).all()
    other = oplet("run", model, "-i", tmp_path / "p.png", "--preprocess", "filter=box", "-o", tmp_path / "values.npz")
    assert "MediaPipe" not in other.err
    with np.load(tmp_path / "values.npz") as values:
        assert values["same"][0, :3, :, 0].tolist() != larger


def test_a_picture_of_nearly_the_input_s_proportions_is_padded_too(tmp_path: Path) -> None:
    pixels = np.full((198, 200, 3), 7, np.uint8)
    given = loaded(tmp_path, pixels, 200, 200, PictureRules(resize="pad", filter="linear", fill=114))
    assert given.pixels[0, [0, 1, 198, 199], 0, 0].tolist() == [114, 7, 7, 114]
    assert given.area == (0, -1, 200, 199)


def test_the_middle_for_a_classifier_is_cut_out_of_the_resized_picture_in_whole_pixels(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (10, 27, 3)).astype(np.uint8)
    given = loaded(tmp_path, pixels, 4, 4, PictureRules(resize="crop", filter="bilinear"))
    # torchvision's Resize(4), CenterCrop(4) on a picture of Pillow's
    whole = np.asarray(Image.fromarray(pixels).resize((int(27 * 4 / 10), 4), Image.Resampling.BILINEAR))
    assert given.pixels[0].tolist() == whole[:, 3:7].tolist()
