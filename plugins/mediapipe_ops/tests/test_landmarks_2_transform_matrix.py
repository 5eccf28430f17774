"""Landmarks2TransformMatrix maps the output's corners to those of a box around some landmarks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from oplet_testing.one_op import Spec

OP = "Landmarks2TransformMatrix"
V1 = {
    "dimensions": 3,
    "landmarks_range": 128,
    "bbox_size_multiplier": 1.5,
    "input_hw": [40, 60],
    "output_hw": [9, 17],
    "left_rotation_idx": 0,
    "right_rotation_idx": 3,
    "subset": [1, 2, 4, 5, 7],
}
V2 = {
    "output_height": 8,
    "output_width": 16,
    "scale_x": 1.5,
    "scale_y": 1.25,
    "target_rotation_radians": 0.0,
    "left_rotation_idx": 0,
    "right_rotation_idx": 3,
    "subset_idxs": [1, 2, 4, 5, 7],
}


def points(seed: int) -> Any:
    return np.random.default_rng(seed).uniform(0, 128, (8, 3)).astype(np.float32)


def shape_of(landmarks: Any, version: int) -> tuple[int, ...]:
    return (1, 1, 1, landmarks.size) if version == 1 else (1, len(landmarks), 3)


def matrix(run_node: Any, landmarks: Any, version: int, **changed: Any) -> Any:
    shape = shape_of(landmarks, version)
    options = {**(V1 if version == 1 else V2), **changed}
    inputs, outputs = [Spec("float32", shape)], [Spec("float32", [1, 4, 4])]
    [y] = run_node(OP, inputs, outputs, landmarks.reshape(shape), options=options, version=version)
    assert y.shape == (1, 4, 4)
    np.testing.assert_array_equal(y[0, 2:], [[0, 0, 1, 0], [0, 0, 0, 1]])
    np.testing.assert_array_equal(y[0, :, 2], [0, 0, 1, 0])
    return y[0].astype(float)


def corners(low: Any, high: Any) -> Any:
    return np.array([[x, y] for x in (low[0], high[0]) for y in (low[1], high[1])], float)


def box_corners(landmarks: Any, subset: list[int], level: float, scale: Any) -> Any:
    """The corners of the box around some points, in a frame whose x axis has the angle `level`, scaled about its middle."""
    right, down = np.array([math.cos(level), math.sin(level)]), np.array([-math.sin(level), math.cos(level)])
    flat = landmarks[subset, :2].astype(float)
    inside = np.stack([flat @ right, flat @ down], 1)
    low, high = inside.min(0), inside.max(0)
    found = (corners(low, high) - (low + high) / 2) * scale + (low + high) / 2
    return found[:, :1] * right + found[:, 1:] * down


def apply(by: Any, flat: Any) -> Any:
    return flat @ by[:2, :2].T + by[:2, 3]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("target", [0.0, 0.5, -3])
def test_version_2_maps_corners_to_corners(seed: int, target: float, run_node: Any) -> None:
    landmarks = points(seed)
    made = matrix(run_node, landmarks, 2, target_rotation_radians=target)
    dx, dy = landmarks[3, :2].astype(float) - landmarks[0, :2]
    expected = box_corners(landmarks, V2["subset_idxs"], math.atan2(dy, dx) - target, (1.5, 1.25))
    np.testing.assert_allclose(apply(made, corners((0, 0), (16, 8))), expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("seed", range(5))
def test_version_1_maps_corner_pixels_to_corners(seed: int, run_node: Any) -> None:
    landmarks = points(seed)
    made = matrix(run_node, landmarks, 1)
    dx, dy = landmarks[3, :2].astype(float) - landmarks[0, :2]
    expected = box_corners(landmarks, V1["subset"], math.atan(dy / dx), 1.5) * [59 / 128, 39 / 128]
    # The box is turned in the landmarks' square; the image's two axes then stretch it.
    np.testing.assert_allclose(apply(made, corners((0, 0), (16, 8))), expected, rtol=1e-4, atol=1e-3)


def test_level_landmarks_give_a_plain_crop(run_node: Any) -> None:
    landmarks = np.array([[10, 20, 0], [30, 20, 5], [10, 40, 9]], np.float32)
    crop = {"left_rotation_idx": 0, "right_rotation_idx": 1, "scale_x": 1.0, "scale_y": 1.0}
    made = matrix(run_node, landmarks, 2, subset_idxs=[0, 1, 2], output_height=20, output_width=20, **crop)
    np.testing.assert_allclose(made, [[1, 0, 0, 10], [0, 1, 0, 20], [0, 0, 1, 0], [0, 0, 0, 1]], atol=1e-5)


def test_eyes_above_one_another_are_no_error(run_node: Any) -> None:
    landmarks = points(1)
    landmarks[3, 0] = landmarks[0, 0]
    landmarks[3, 1] = landmarks[0, 1] + 8
    made = matrix(run_node, landmarks, 1, input_hw=[129, 129])
    expected = box_corners(landmarks, V1["subset"], math.pi / 2, 1.5)
    np.testing.assert_allclose(apply(made, corners((0, 0), (16, 8))), expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e38, 0])
def test_landmarks_that_make_no_box_are_no_error(version: int, value: float, run_node: Any) -> None:
    matrix(run_node, np.full((8, 3), value, np.float32), version)


@pytest.mark.parametrize(
    ("version", "changed", "reason"),
    [
        (1, {"dimensions": 2}, "'dimensions' is 2"),
        (1, {"dimensions": 4}, "'dimensions' is 4"),
        (1, {"landmarks_range": 0}, "'landmarks_range' is 0"),
        (1, {"bbox_size_multiplier": 0}, "'bbox_size_multiplier' must not be 0"),
        (1, {"bbox_size_multiplier": math.inf}, "'bbox_size_multiplier' is inf"),
        (1, {"input_hw": [0, 4]}, "'input_hw' holds 0"),
        (1, {"output_hw": [4, 1]}, "'output_hw' holds 1"),
        (1, {"output_hw": 4}, "'output_hw' is 4"),
        (1, {"subset": []}, "'subset' is \\[\\]"),
        (1, {"subset": [1, -2]}, "'subset' holds -2"),
        (1, {"subset": [1, 8]}, "landmark 8.*holds 8"),
        (1, {"left_rotation_idx": -1}, "'left_rotation_idx' is -1"),
        (2, {"left_rotation_idx": 8}, "landmark 8.*holds 8"),
        (2, {"right_rotation_idx": 2**40}, "is 1099511627776; it must be an integer from 0 to 2147483647"),
        (2, {"right_rotation_idx": None}, "'right_rotation_idx' is missing"),
        (2, {"subset_idxs": ["a"]}, "'subset_idxs' holds 'a'"),
        (2, {"subset_idxs": [1, 0.5]}, "'subset_idxs' holds 0.5"),
        (2, {"output_height": 0}, "'output_height' is 0"),
        (2, {"output_width": -3}, "'output_width' is -3"),
        (2, {"scale_x": 0.0}, "'scale_x' are .* and 0.0"),
        (2, {"scale_y": -1.0}, "'scale_y'"),
        (2, {"target_rotation_radians": math.nan}, "'target_rotation_radians' is nan"),
    ],
)
def test_options_that_make_no_sense_are_refused(version: int, changed: Any, reason: str, run_node: Any) -> None:
    with pytest.raises(RuntimeError, match=rf"(?s){reason}"):
        matrix(run_node, points(0), version, **changed)


@pytest.mark.parametrize(
    ("version", "shape"), [(1, (1, 8, 3)), (1, (1, 1, 1, 25)), (1, (2, 1, 1, 24)), (2, (1, 12, 2)), (2, (2, 8, 3)), (2, (24,))]
)
def test_landmarks_of_another_shape_are_refused(version: int, shape: Any, run_node: Any) -> None:
    options = V1 if version == 1 else V2
    with pytest.raises(RuntimeError, match="must have the shape"):
        run_node(
            OP, [Spec("float32", shape)], [Spec("float32", [1, 4, 4])], np.zeros(shape, "f4"), options=options, version=version
        )
