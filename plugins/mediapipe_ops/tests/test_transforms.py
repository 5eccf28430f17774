"""TransformTensorBilinear samples an image, and TransformLandmarks moves points, where a matrix says."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from plugins.mediapipe_ops.tests.drawing import numbers

from oplet_testing.one_op import Spec

IMAGE, POINTS = "TransformTensorBilinear", "TransformLandmarks"
IDENTITY = np.eye(4, dtype=np.float32)[None]
QUARTER_TURN = np.array([[[0, -1, 0, 4], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]], np.float32)


def matrix(seed: int) -> Any:
    """A matrix that turns, shrinks or stretches, and shifts; what it says about z must not matter."""
    made = np.random.default_rng(seed).uniform(-1, 1, (1, 4, 4)).astype(np.float32)
    made[0, :2, :2] += IDENTITY[0, :2, :2]
    made[0, :2, 3] *= 2
    return made


def sample(run_node: Any, image: Any, by: Any, size: tuple[int, int], version: int = 2, op: str = IMAGE) -> Any:
    options: Any = {"output_height": size[0], "output_width": size[1]}
    if version == 1:
        options = {"mode": "bilinear", "output_size": list(size)}
    inputs = [Spec("float32", image.shape), Spec("float32", by.shape)]
    outputs = [Spec("float32", [1, *size, image.shape[-1]])]
    [y] = run_node(op, inputs, outputs, image, by, options=options, version=version)
    return y


def sampled(image: Any, by: Any, size: tuple[int, int], version: int) -> Any:
    """The rule, pixel by pixel, in float64: distances to the four neighbours are their weights."""
    _, rows, columns, channels = image.shape
    half = 0.5 if version == 2 else 0.0
    out = np.zeros((1, *size, channels))
    for i in range(size[0]):
        for j in range(size[1]):
            x, y = by[0, :2].astype(float) @ [j + half, i + half, 0, 1] - half
            if not (0 <= x <= columns - 1 and 0 <= y <= rows - 1):
                continue
            for row in range(max(0, math.ceil(y - 1)), min(rows, math.floor(y) + 2)):
                for column in range(max(0, math.ceil(x - 1)), min(columns, math.floor(x) + 2)):
                    weight = max(0, 1 - abs(y - row)) * max(0, 1 - abs(x - column))
                    out[0, i, j] += weight * image[0, row, column].astype(float)
    return out


@pytest.mark.parametrize("version", [1, 2])
def test_the_identity_gives_the_image_back_and_zeros_beyond_it(version: int, run_node: Any) -> None:
    image = numbers(1, 5, 7, 3)
    y = sample(run_node, image, IDENTITY, (6, 9), version)
    np.testing.assert_array_equal(y[:, :5, :7], image)
    assert not y[:, 5:].any()
    assert not y[:, :, 7:].any()


def test_a_quarter_turn_turns_pixel_centres(run_node: Any) -> None:
    image = numbers(1, 4, 4, 2)
    y = sample(run_node, image, QUARTER_TURN, (4, 4))
    np.testing.assert_allclose(y[0], np.rot90(image[0], 1), rtol=1e-6)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("seed", range(6))
def test_each_pixel_mixes_its_neighbours(seed: int, version: int, run_node: Any) -> None:
    image, by = numbers(1, 6, 5, 3), matrix(seed)
    y = sample(run_node, image, by, (7, 8), version)
    np.testing.assert_allclose(y, sampled(image, by, (7, 8), version), rtol=1e-4, atol=1e-4)


def test_version_1_has_another_name_too(run_node: Any) -> None:
    image, by = numbers(1, 6, 5, 3), matrix(1)
    y = sample(run_node, image, by, (3, 4), 1, "TransformTensor")
    np.testing.assert_array_equal(y, sample(run_node, image, by, (3, 4), 1))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e38])
def test_a_matrix_that_leads_nowhere_gives_zeros(value: float, run_node: Any) -> None:
    y = sample(run_node, numbers(1, 4, 4, 2), np.full((1, 4, 4), value, np.float32), (3, 3))
    assert not y.any()


@pytest.mark.parametrize("shape", [(1, 0, 3, 2), (1, 3, 0, 2), (1, 3, 3, 0)])
def test_an_image_of_nothing_gives_zeros(shape: tuple[int, ...], run_node: Any) -> None:
    y = sample(run_node, np.zeros(shape, np.float32), IDENTITY, (2, 2))
    assert y.shape == (1, 2, 2, shape[3])
    assert not y.any()


def move(run_node: Any, points: Any, by: Any, version: int = 2, options: Any = b"") -> Any:
    inputs = [Spec("float32", points.shape), Spec("float32", by.shape)]
    [y] = run_node(POINTS, inputs, [Spec("float32", points.shape)], points, by, options=options, version=version)
    return y


@pytest.mark.parametrize("dimensions", [2, 3])
def test_points_are_moved_in_the_plane_and_keep_their_depth(dimensions: int, run_node: Any) -> None:
    points, by = numbers(1, 9, dimensions), matrix(3)
    y = move(run_node, points, by)
    for before, after in zip(points[0], y[0]):
        flat = by[0, :2].astype(float) @ [before[0], before[1], 0, 1]
        np.testing.assert_allclose(after, [*flat, *before[2:]], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(move(run_node, points, IDENTITY), points)


@pytest.mark.parametrize(("options", "dimensions", "scale"), [({}, 3, 1), ({"dimensions": 2, "scale": 0.25}, 2, 0.25)])
def test_version_1_finds_points_in_the_channels_and_scales_the_shift(
    options: Any, dimensions: int, scale: float, run_node: Any
) -> None:
    points, by = numbers(1, 2, 2, 6), matrix(4)
    scaled = by.copy()
    scaled[0, :2, 3] *= scale
    y = move(run_node, points, by, 1, options)
    flat = move(run_node, points.reshape(1, -1, dimensions), scaled)
    np.testing.assert_allclose(y, flat.reshape(points.shape), rtol=1e-6)


def test_no_points_are_no_error(run_node: Any) -> None:
    assert move(run_node, np.zeros((1, 0, 2), np.float32), IDENTITY).shape == (1, 0, 2)


A, M, SIZE = Spec("float32", [1, 4, 4, 2]), Spec("float32", [1, 4, 4]), {"output_height": 2, "output_width": 2}
P, P1 = Spec("float32", [1, 5, 3]), Spec("float32", [1, 1, 1, 6])


@pytest.mark.parametrize(
    ("op", "version", "inputs", "options", "reason"),
    [
        (IMAGE, 2, [A], SIZE, "inputs and takes 2"),
        (IMAGE, 2, [Spec("float32", [2, 4, 4, 2]), M], SIZE, "one image"),
        (IMAGE, 2, [Spec("uint8", A.shape), M], SIZE, "UINT8"),
        (IMAGE, 2, [A, Spec("float32", [1, 3, 3])], SIZE, "4 x 4"),
        (IMAGE, 2, [A, Spec("float64", M.shape)], SIZE, "FLOAT64"),
        (IMAGE, 2, [A, M], {}, "'output_height' is missing"),
        (IMAGE, 2, [A, M], {**SIZE, "output_width": 0}, "'output_width' is 0"),
        (IMAGE, 2, [A, M], {**SIZE, "output_width": "wide"}, "'output_width' is 'wide'"),
        (IMAGE, 2, [A, M], {**SIZE, "output_width": 2**62}, ""),
        (IMAGE, 2, [A, M], b"\x01\x02", "FlexBuffer"),
        (IMAGE, 2, [A, M], b"", "missing"),
        (IMAGE, 1, [A, M], {"mode": "nearest", "output_size": [2, 2]}, "'nearest'"),
        (IMAGE, 1, [A, M], {"output_size": [2, 2, 2]}, "list of 2 integers"),
        (IMAGE, 1, [A, M], {"output_size": [2, 0]}, "'output_size' holds 0"),
        (POINTS, 2, [P], b"", "inputs and takes 2"),
        (POINTS, 2, [Spec("float32", [1, 5, 4]), M], b"", "4 coordinates"),
        (POINTS, 2, [Spec("float32", [2, 5, 2]), M], b"", "first of them 1"),
        (POINTS, 2, [P1, M], b"", "3 dimensions"),
        (POINTS, 2, [Spec("int32", P.shape), M], b"", "INT32"),
        (POINTS, 2, [P, P], b"", "4 x 4"),
        (POINTS, 1, [P, M], {}, "4 dimensions"),
        (POINTS, 1, [P1, M], {"dimensions": 4}, "4 coordinates"),
        (POINTS, 1, [Spec("float32", [1, 1, 1, 5]), M], {"dimensions": 2}, "whole points"),
        (POINTS, 1, [P1, M], {"scale": 0}, "'scale' must not be 0"),
        (POINTS, 1, [P1, M], {"scale": math.nan}, "'scale' is nan"),
    ],
)
def test_it_refuses(op: str, version: int, inputs: Any, options: Any, reason: str, run_node: Any) -> None:
    feeds = [np.zeros(i.shape, i.type) for i in inputs]
    with pytest.raises(RuntimeError, match=rf"(?s){reason}"):
        run_node(op, inputs, [Spec("float32", inputs[0].shape)], *feeds, options=options, version=version)
