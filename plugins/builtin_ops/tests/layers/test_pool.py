from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oplet.errors import OpletError
from oplet.schema.enums import ActivationFunctionType, Padding
from oplet.schema.options import Pool2DOptions
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec


def pool(op: str, type: str, shape: tuple[int, ...], **options: Any) -> bytes:
    spec = Spec(type, shape, *(() if type == "float32" else (0.1, 0 if type == "int16" else 3)))
    return one_op_model(op, [spec], [spec], Pool2DOptions(**options), version=3)


def test_a_window_gives_its_largest_value_or_its_mean() -> None:
    values = np.array([[1, 2, 5], [3, 8, 0]], np.float32).reshape(1, 2, 3, 1)
    options = {"padding": Padding.VALID, "filter_height": 2, "filter_width": 2, "stride_h": 1, "stride_w": 1}
    assert run_op(pool("MAX_POOL_2D", "float32", values.shape, **options), values)[0].ravel().tolist() == [8, 8]
    assert run_op(pool("AVERAGE_POOL_2D", "float32", values.shape, **options), values)[0].ravel().tolist() == [3.5, 3.75]


def test_the_padding_counts_for_nothing() -> None:
    values = np.array([-4, -2], np.float32).reshape(1, 1, 2, 1)
    options = {"padding": Padding.SAME, "filter_height": 3, "filter_width": 3, "stride_h": 1, "stride_w": 1}
    assert run_op(pool("MAX_POOL_2D", "float32", values.shape, **options), values)[0].ravel().tolist() == [-2, -2]
    assert run_op(pool("AVERAGE_POOL_2D", "float32", values.shape, **options), values)[0].ravel().tolist() == [-3, -3]


def test_integer_means_round_halves_away_from_zero() -> None:
    values = np.array([1, 2, -1, -2], np.int8).reshape(1, 1, 4, 1)
    options = {"padding": Padding.VALID, "filter_height": 1, "filter_width": 2, "stride_h": 1, "stride_w": 2}
    assert run_op(pool("AVERAGE_POOL_2D", "int8", values.shape, **options), values)[0].ravel().tolist() == [2, -2]


WINDOWS = [(1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 1, 1), (3, 2, 2, 1), (1, 3, 2, 3), (4, 1, 1, 2), (7, 6, 1, 1), (2, 2, 3, 4)]


@pytest.mark.parametrize("activation", list(ActivationFunctionType)[:4])
@pytest.mark.parametrize("padding", list(Padding))
@pytest.mark.parametrize("type", ["float32", "uint8", "int8", "int16"])
@pytest.mark.parametrize("op", ["MAX_POOL_2D", "AVERAGE_POOL_2D"])
def test_pools_equal_litert_s(
    op: str, type: str, padding: Padding, activation: ActivationFunctionType, litert: Callable[..., list[Any]]
) -> None:
    random = np.random.default_rng(0)
    for height, width, down, across in WINDOWS:
        shape = (2, 7, 6, 3)
        values = random.normal(0, 4, shape).astype(type) if type == "float32" else random.integers(-128, 256, shape).astype(type)
        model = pool(
            op, type, shape, padding=padding, filter_height=height, filter_width=width, stride_h=down, stride_w=across,
            fused_activation_function=activation,
        )  # fmt: skip
        np.testing.assert_allclose(
            run_op(model, values)[0], litert(model, values)[0], rtol=0 if type != "float32" else 1e-5, atol=1e-6
        )


@pytest.mark.parametrize("along", ["height", "width"])
@pytest.mark.parametrize("padding", list(Padding))
@pytest.mark.parametrize(("op", "reduce"), [("MAX_POOL_2D", np.max), ("AVERAGE_POOL_2D", np.mean)])
def test_long_windows_hold_what_lies_in_them(op: str, reduce: Any, padding: Padding, along: str) -> None:
    size, filter, stride = 200, 70, 45
    values = np.random.default_rng(0).integers(-512, 512, size).astype(np.float32)
    values[-1] = 600
    before = 0 if padding == Padding.VALID else (4 * stride + filter - size) // 2
    starts = [number * stride - before for number in range(3 if padding == Padding.VALID else 5)]
    wanted = [reduce(values[max(0, start) : start + filter]) for start in starts]
    down = along == "height"
    options = {"filter_height": filter, "filter_width": 1} if down else {"filter_height": 1, "filter_width": filter}
    model = pool(
        op, "float32", (1, size, 1, 1) if down else (1, 1, size, 1), padding=padding, stride_h=stride, stride_w=stride, **options
    )
    found = run_op(model, values.reshape((1, size, 1, 1) if down else (1, 1, size, 1)))[0]
    np.testing.assert_allclose(found.ravel(), np.float32(wanted), rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"stride_h": 0}, "stride_height is 0"),
        ({"stride_w": -1}, "stride_width is -1"),
        ({"filter_height": 0}, "height is 0"),
        ({"filter_width": -3}, "width is -3"),
    ],
)
def test_windows_that_make_no_sense_are_refused(options: dict[str, int], reason: str) -> None:
    whole = {"padding": Padding.VALID, "stride_h": 1, "stride_w": 1, "filter_height": 2, "filter_width": 2, **options}
    with pytest.raises(OpletError, match=reason):
        run_op(pool("MAX_POOL_2D", "float32", (1, 4, 4, 1), **whole), np.zeros((1, 4, 4, 1), np.float32))


@pytest.mark.parametrize("op", ["MAX_POOL_2D", "AVERAGE_POOL_2D"])
@pytest.mark.parametrize(
    ("shape", "rows", "wanted"),
    [((1, 4, 4, 1), 9, (1, 0, 3, 1)), ((1, 0, 4, 1), 2, (1, 0, 3, 1)), ((1, 4, 0, 1), 2, (1, 0, 0, 1))],
)
def test_a_map_without_room_for_a_window_gives_nothing(
    op: str, shape: tuple[int, ...], rows: int, wanted: tuple[int, ...], litert: Callable[..., Any]
) -> None:
    model = pool(op, "float32", shape, padding=Padding.VALID, stride_h=1, stride_w=1, filter_height=rows, filter_width=2)
    values = np.zeros(shape, np.float32)
    assert run_op(model, values)[0].shape == wanted == litert(model, values)[0].shape


def test_a_window_far_larger_than_the_map_costs_nothing() -> None:
    options = {"padding": Padding.SAME, "stride_h": 1, "stride_w": 1, "filter_height": 2**31 - 1, "filter_width": 2**31 - 1}
    values = np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)
    assert (run_op(pool("MAX_POOL_2D", "float32", values.shape, **options), values)[0] == 15).all()


@pytest.mark.parametrize("plugins", [["builtin_ops"], None], ids=["numpy", "compiled"])
@pytest.mark.parametrize("op", ["MAX_POOL_2D", "AVERAGE_POOL_2D"])
def test_nan_and_infinities_go_through_a_pool_as_they_are(op: str, plugins: Any) -> None:
    nan, inf = np.nan, np.inf
    windows = np.array([[nan, 1], [1, nan], [inf, 1], [-inf, -inf], [nan, nan], [-inf, 1]], np.float32).reshape(1, 6, 2, 1)
    whole = Pool2DOptions(padding=Padding.VALID, stride_w=2, stride_h=1, filter_width=2, filter_height=1)
    model = one_op_model(op, [Spec("float32", windows.shape)], [Spec("float32", (1, 6, 1, 1))], whole)
    last = 1 if op == "MAX_POOL_2D" else -inf
    np.testing.assert_array_equal(run_op(model, windows, plugins=plugins)[0].ravel(), [nan, nan, inf, -inf, nan, last])
