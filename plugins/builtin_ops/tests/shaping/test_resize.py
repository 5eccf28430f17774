from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oplet import Interpreter, Limits
from oplet.errors import LimitError, OpletError
from oplet.schema.options import ResizeBilinearOptions, ResizeNearestNeighborOptions
from oplet_builtin_ops.ops import resize_nearest_neighbor
from oplet_builtin_ops.shaping import interpolation
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec

MODES: list[dict[str, bool]] = [{}, {"align_corners": True}, {"half_pixel_centers": True}]


def resize(op: str, type: str, shape: tuple[int, ...], size: Any, **mode: bool) -> bytes:
    options = (ResizeBilinearOptions if op == "RESIZE_BILINEAR" else ResizeNearestNeighborOptions)(**mode)
    operand = size if isinstance(size, Spec) else np.array(size, np.int32)
    return one_op_model(op, [Spec(type, shape), operand], [Spec(type, (1, 1, 1, 1))], options, version=3)


def test_bilinear_lies_between_its_neighbours() -> None:
    values = np.array([0, 8], np.float32).reshape(1, 1, 2, 1)
    (output,) = run_op(resize("RESIZE_BILINEAR", "float32", values.shape, [1, 4], half_pixel_centers=True), values)
    assert output.ravel().tolist() == [0, 2, 6, 8]


def test_nearest_repeats_pixels() -> None:
    values = np.array([[1, 2], [3, 4]], np.int8).reshape(1, 2, 2, 1)
    (output,) = run_op(resize("RESIZE_NEAREST_NEIGHBOR", "int8", values.shape, [4, 6]), values)
    np.testing.assert_array_equal(output[0, :, :, 0], values[0, :, :, 0].repeat(2, 0).repeat(3, 1))


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: next(iter(mode), "plain"))
@pytest.mark.parametrize("type", ["float32", "uint8", "int8", "int16"])
@pytest.mark.parametrize("op", ["RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"])
def test_resizing_equals_litert_s(op: str, type: str, mode: dict[str, bool], litert: Callable[..., list[Any]]) -> None:
    random = np.random.default_rng(0)
    for shape, size in (
        ((2, 5, 7, 3), (10, 14)), ((1, 40, 3, 1), (3, 50)), ((1, 4, 4, 6), (4, 4)), ((1, 9, 33, 5), (20, 13)), ((1, 1, 1, 2), (3, 2)), ((1, 6, 8, 2), (1, 1)),
    ):  # fmt: skip
        values = random.normal(size=shape).astype(type) if type == "float32" else random.integers(-128, 256, shape).astype(type)
        model = resize(op, type, shape, size, **mode)
        np.testing.assert_allclose(
            run_op(model, values)[0], litert(model, values)[0], rtol=1e-5 if type == "float32" else 0, atol=1e-6
        )


@pytest.mark.parametrize("op", ["RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"])
def test_the_size_may_arrive_at_run_time(op: str) -> None:
    model = resize(op, "float32", (1, 1, 1, 1), Spec("int32", (2,)))
    values = np.full((1, 1, 1, 1), 3, np.float32)
    for size in ((2, 3), (1, 1), (4, 2)):
        (output,) = run_op(model, values, np.array(size, np.int32))
        np.testing.assert_array_equal(output, np.full((1, *size, 1), 3))
    with pytest.raises(OpletError, match="asks for 2 x 0"):
        run_op(model, values, np.array([2, 0], np.int32))


@pytest.mark.parametrize(
    ("shape", "size", "mode", "reason"),
    [
        ((1, 2, 2, 1), [0, -4], {}, "asks for 0 x -4"),
        ((1, 0, 2, 1), [2, 2], {}, "no pixels"),
        ((2, 2, 1), [2, 2], {}, "must have 4 dimensions"),
        ((1, 2, 2, 1), [2, 2, 2], {}, "vector of two"),
        ((1, 2, 2, 1), [2, 2], {"align_corners": True, "half_pixel_centers": True}, "exclude each other"),
    ],
)
def test_impossible_sizes_are_refused(shape: tuple[int, ...], size: list[int], mode: dict[str, bool], reason: str) -> None:
    with pytest.raises(OpletError, match=reason):
        run_op(resize("RESIZE_BILINEAR", "float32", shape, size, **mode), np.zeros(shape, np.float32))


@pytest.mark.parametrize("type", ["float32", "int8", "uint8"])
@pytest.mark.parametrize("op", ["RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"])
def test_maps_without_channels_take_no_time_and_no_memory(op: str, type: str) -> None:
    (output,) = run_op(resize(op, type, (1, 3, 3, 0), [2**30, 2**29]), np.zeros((1, 3, 3, 0), type))
    assert output.shape == (1, 2**30, 2**29, 0)


@pytest.mark.parametrize("op", ["RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"])
def test_maps_without_pixels_are_refused(op: str) -> None:
    with pytest.raises(OpletError, match=r"\[1, 0, 3, 2\].* has no pixels to make others from"):
        run_op(resize(op, "float32", (1, 0, 3, 2), [4, 4]), np.zeros((1, 0, 3, 2), np.float32))


def test_long_sides_are_planned_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the size of a part, the neighbours are the same."""
    for find in (interpolation.float_neighbours, interpolation.integer_neighbours):
        whole = find(7, 50, True, False)
        with monkeypatch.context() as patch:
            patch.setattr(interpolation, "_PART", 8)
            parts = find(7, 50, True, False)
        assert [np.asarray(value).tolist() for value in parts] == [np.asarray(value).tolist() for value in whole]


def test_scratch_beyond_the_limit_is_refused_before_neighbours_are_looked_for() -> None:
    model = resize("RESIZE_BILINEAR", "int8", (1, 2, 2, 3), [2**24, 1])
    runner = Interpreter(model_content=model, limits=Limits(max_tensor_bytes=64 << 20))
    with pytest.raises(LimitError, match=r"\[1, 16777216, 1, 3\]\) takes 201326592 bytes"):
        runner.allocate_tensors()


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_nearest_of_many_pixels_is_nearest_of_few(mode: dict[str, bool], monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.arange(2 * 5 * 7 * 3, dtype=np.int32).reshape(2, 5, 7, 3)
    model = resize("RESIZE_NEAREST_NEIGHBOR", "int32", values.shape, [9, 40], **mode)
    (whole,) = run_op(model, values)
    monkeypatch.setattr(resize_nearest_neighbor, "_MANY", 64)
    np.testing.assert_array_equal(run_op(model, values)[0], whole)
