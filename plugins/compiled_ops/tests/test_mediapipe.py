"""Compiled custom operators of MediaPipe's models answer as those of oplet-mediapipe-ops do, which serve the nodes that are declined."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers
from plugins.compiled_ops.tests.compiled import is_compiled
from plugins.compiled_ops.tests.conftest import answer

import oplet_compiled_ops
from oplet import MutableOpResolver
from oplet_testing import Spec, one_op_model

pytest.importorskip("oplet_mediapipe_ops")

OURS = ["oplet-mediapipe-ops", "oplet-compiled-ops"]
BOX = {
    "output_height": 8,
    "output_width": 16,
    "scale_x": 1.5,
    "scale_y": 1.25,
    "target_rotation_radians": 0.5,
    "left_rotation_idx": 0,
    "right_rotation_idx": 3,
    "subset_idxs": [1, 2, 4, 5, 7],
}


def model(op: str, version: int, shapes: list[tuple[int, ...]], output: tuple[int, ...], options: dict[str, Any]) -> bytes:
    encoded = bytes(flexbuffers.Dumps(options))
    inputs = [Spec("float32", shape) for shape in shapes]
    return one_op_model(op, inputs, [Spec("float32", output)], version=version, custom_options=encoded)


def both(content: bytes, values: list[Any], threads: int = 1) -> tuple[Any, Any]:
    assert is_compiled(content)
    [wanted] = answer(content, values, OURS[:1])
    [got] = answer(content, values, OURS, threads)
    return got, wanted


def matrix(seed: int) -> Any:
    made = np.random.default_rng(seed).uniform(-1, 1, (1, 4, 4)).astype(np.float32)
    made[0, :2, :2] += np.eye(2, dtype=np.float32)
    made[0, :2, 3] *= 2
    return made


@pytest.mark.parametrize(
    ("op", "version"), [("TransformTensorBilinear", 2), ("TransformTensorBilinear", 1), ("TransformTensor", 1)]
)
@pytest.mark.parametrize("channels", [3, 16])
@pytest.mark.parametrize("threads", [1, 2])
def test_samples_of_an_image_are_the_same_bits(op: str, version: int, channels: int, threads: int) -> None:
    size = (40, 31)
    options = {"output_size": list(size)} if version == 1 else {"output_height": size[0], "output_width": size[1]}
    image = np.random.default_rng(0).standard_normal((1, 33, 29, channels)).astype(np.float32)
    content = model(op, version, [image.shape, (1, 4, 4)], (1, *size, channels), options)
    for by in (*map(matrix, range(5)), np.eye(4, dtype=np.float32)[None], np.full((1, 4, 4), np.nan, np.float32)):
        got, wanted = both(content, [image, by], threads)
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(
    ("version", "shape", "options"),
    [(2, (1, 9, 2), {}), (2, (1, 9, 3), {}), (1, (1, 2, 2, 6), {"dimensions": 3, "scale": 0.25}), (2, (1, 9000, 3), {})],
)
@pytest.mark.parametrize("threads", [1, 2])
def test_landmarks_are_moved_alike(version: int, shape: tuple[int, ...], options: dict[str, Any], threads: int) -> None:
    points = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    got, wanted = both(model("TransformLandmarks", version, [shape, (1, 4, 4)], shape, options), [points, matrix(3)], threads)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("value", [None, np.nan, np.inf, 0])
def test_the_matrix_of_a_box_around_landmarks_is_alike(value: float | None) -> None:
    landmarks = np.random.default_rng(2).uniform(0, 128, (1, 8, 3)).astype(np.float32)
    if value is not None:
        landmarks[0, 4:] = value
    content = model("Landmarks2TransformMatrix", 2, [landmarks.shape], (1, 4, 4), BOX)
    with np.errstate(invalid="ignore"):
        got, wanted = both(content, [landmarks])
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


def transposed(strides: tuple[int, int], window: tuple[int, int], filters: int) -> tuple[bytes, Any]:
    random = np.random.default_rng(filters)
    x = random.standard_normal((2, 30, 20, 16)).astype(np.float32)
    weights, bias = (random.standard_normal(shape).astype(np.float32) for shape in ((filters, *window, 16), (filters,)))
    output = 2, 29 * strides[0] + window[0], 19 * strides[1] + window[1], filters
    options = np.array([2, strides[1], strides[0]], np.int32).tobytes()
    inputs = [Spec("float32", x.shape), weights, bias]
    return one_op_model("Convolution2DTransposeBias", inputs, [Spec("float32", output)], custom_options=options), x


@pytest.mark.parametrize(("window", "filters"), [((2, 2), 1), ((2, 2), 3), ((1, 2), 1), ((4, 3), 5)])
@pytest.mark.parametrize("threads", [1, 2])
def test_transposed_convolutions_of_windows_side_by_side_are_alike(window: tuple[int, int], filters: int, threads: int) -> None:
    content, x = transposed(window, window, filters)
    got, wanted = both(content, [x], threads)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("strides", [(1, 2), (3, 2)])
def test_transposed_convolutions_of_other_windows_are_left_to_numpy(strides: tuple[int, int]) -> None:
    content, x = transposed(strides, (2, 2), 2)
    assert not is_compiled(content)
    assert answer(content, [x], OURS)[0].shape[3] == 2


def test_what_is_not_compiled_is_served_by_the_package_that_brings_the_operator() -> None:
    content = model(
        "TransformTensorBilinear", 2, [(1, 0, 3, 2), (1, 4, 4)], (1, 2, 2, 2), {"output_height": 2, "output_width": 2}
    )
    assert not is_compiled(content)
    [found] = answer(content, [np.zeros((1, 0, 3, 2), np.float32), matrix(0)], OURS)
    assert not found.any()


def test_without_the_package_that_brings_them_they_are_not_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", [])
    for package in oplet_compiled_ops.ELSEWHERE:
        monkeypatch.delitem(sys.modules, package, raising=False)
    resolver = MutableOpResolver()
    oplet_compiled_ops.register_ops(resolver)
    assert {claim.op for claim in resolver.entries() if isinstance(claim.op, str)} == set(oplet_compiled_ops.CUSTOM)
