"""Operators that move windows over volumes and images give what TensorFlow gives, and refuse what it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from plugins.flex_ops.tests.sweeps import Case, difference, dtype_of, oplet_results

from oplet import TensorType as T

rng = np.random.default_rng(3)


def volume(*shape: int, type: T = T.FLOAT32) -> Any:
    kind = dtype_of(type)
    return (rng.normal(size=shape) * (20 if kind.kind in "iu" else 1)).astype(kind)


def five(values: Any) -> list[int]:
    return [1, *values, 1]


#: Sizes of the volume, of the window, strides and dilations.
LAYOUTS = [
    ((5, 6, 7), (3, 2, 1), (1, 1, 1), (1, 1, 1)),
    ((5, 6, 7), (2, 3, 3), (2, 1, 3), (1, 1, 1)),
    ((4, 4, 4), (4, 4, 4), (1, 2, 2), (1, 1, 1)),
    ((8, 6, 7), (2, 2, 3), (1, 1, 1), (2, 3, 1)),
    ((3, 3, 3), (5, 1, 1), (1, 1, 1), (1, 1, 1)),
    ((6, 6, 6), (1, 1, 1), (3, 4, 7), (1, 1, 1)),
]


def out_of(size: Any, window: Any, strides: Any, rates: Any, padding: str) -> list[int]:
    if padding == "SAME":
        return [-(-n // s) for n, s in zip(size, strides)]
    return [max(0, (n - (k - 1) * r - 1) // s + 1) for n, k, s, r in zip(size, window, strides, rates)]


def convolutions() -> Iterator[Case]:
    for type in (T.FLOAT32, T.FLOAT64):
        for size, window, strides, rates in LAYOUTS:
            for padding in ("SAME", "VALID"):
                given = {
                    "T": type,
                    "strides": five(strides),
                    "padding": padding,
                    "dilations": five(rates),
                    "data_format": "NDHWC",
                }
                x, filters = volume(2, *size, 3, type=type), volume(*window, 3, 4, type=type)
                # TensorFlow dilates no doubles, and shifts them where a stride leaves gaps
                if type == T.FLOAT32 or (rates == (1, 1, 1) and max(strides) <= max(window)):
                    yield Case("Conv3D", [x, filters], given)
                if rates == (1, 1, 1) and 0 not in out_of(size, window, strides, rates, padding):
                    slopes = volume(2, *out_of(size, window, strides, rates, padding), 4, type=type)
                    shape = np.array(x.shape, np.int32)
                    yield Case("Conv3DBackpropInputV2", [shape, filters, slopes], {**given, "Tshape": T.INT32})
                    yield Case("Conv3DBackpropFilterV2", [x, np.array(filters.shape, np.int32), slopes], given)
    given = {"T": T.FLOAT32, "strides": [1] * 5, "padding": "SAME"}
    yield Case("Conv3D", [volume(1, 3, 3, 3, 2), volume(2, 2, 2, 3, 4)], given)
    yield Case(
        "Conv3DBackpropInputV2", [np.array([1, 3, 3, 3, 2], np.int32), volume(2, 2, 2, 2, 4), volume(1, 3, 3, 2, 4)], given
    )
    yield Case(
        "Conv3DBackpropInputV2", [np.array([1, 3, -3, 3, 2], np.int32), volume(2, 2, 2, 2, 4), volume(1, 3, 3, 3, 4)], given
    )
    yield Case(
        "Conv3DBackpropFilterV2", [volume(1, 3, 3, 3, 2), np.array([1, 1, 1, 3, 4], np.int32), volume(1, 3, 3, 3, 4)], given
    )


def pools() -> Iterator[Case]:
    for size, window, strides, rates in LAYOUTS:
        for padding in ("SAME", "VALID"):
            if rates != (1, 1, 1):
                continue
            given = {"T": T.FLOAT32, "ksize": five(window), "strides": five(strides), "padding": padding, "data_format": "NDHWC"}
            x = volume(2, *size, 3)
            slopes = volume(2, *out_of(size, window, strides, rates, padding), 3)
            yield Case("AvgPool3D", [x], given)
            yield Case("MaxPool3D", [x], given)
            if slopes.size:
                yield Case("AvgPool3DGrad", [np.array(x.shape, np.int32), slopes], given)
    whole = {"T": T.FLOAT32, "ksize": five((2, 2, 2)), "strides": five((2, 1, 2)), "data_format": "NDHWC"}
    for padding, best in (("SAME", (2, 5, 2)), ("VALID", (2, 4, 2))):
        x = volume(2, 4, 5, 4, 3)
        [pooled] = max_pool(x, padding)
        inputs = [x, pooled, volume(2, *best, 3)]
        yield Case("MaxPool3DGrad", inputs, {**whole, "TInput": T.FLOAT32, "padding": padding})
    yield Case("MaxPool3DGrad", [x, x, x], {**whole, "TInput": T.FLOAT32, "padding": "SAME"})


def max_pool(x: Any, padding: str) -> list[Any]:
    from plugins.flex_ops.tests.oracle import tensorflow_results

    given = {"T": T.FLOAT32, "ksize": five((2, 2, 2)), "strides": five((2, 1, 2)), "padding": padding}
    return tensorflow_results("MaxPool3D", [x], given)


def images() -> Iterator[Case]:
    for type in (T.FLOAT32, T.FLOAT64, T.INT32, T.UINT8):
        for size, window, strides, rates in LAYOUTS:
            for padding in ("SAME", "VALID"):
                x = volume(2, *size[:2], 3, type=type)
                given = {"T": type, "strides": five(strides[:2]), "padding": padding}
                for numbers in (T.INT32, T.INT64):
                    for batch in (False, True):
                        more = {"ksize": five(window[:2]), "Targmax": numbers, "include_batch_in_index": batch}
                        yield Case("MaxPoolWithArgmax", [x], {**given, **more}, 2)
                filters = volume(*window[:2], 3, type=type)
                yield Case("Dilation2D", [x, filters], {**given, "rates": five(rates[:2])})
    yield Case(
        "Dilation2D",
        [volume(1, 3, 3, 2), volume(2, 2, 3)],
        {"T": T.FLOAT32, "strides": [1] * 4, "rates": [1] * 4, "padding": "SAME"},
    )


SWEEPS = [convolutions, pools, images]


@pytest.mark.sweep
@pytest.mark.parametrize("cases", SWEEPS)
def test_they_agree_with_tensorflow(cases: Callable[[], Iterator[Case]]) -> None:
    assert max(difference(case) for case in cases()) < 1e-5


@pytest.mark.parametrize(("op", "window"), [("Conv3D", False), ("AvgPool3D", True), ("MaxPool3D", True)])
def test_channels_may_come_first(op: str, window: bool) -> None:
    x, filters = volume(2, 5, 6, 7, 3), volume(2, 3, 2, 3, 4)
    sides = {"strides": (2, 1, 2), **({"ksize": (2, 3, 2)} if window else {})}
    given = {"T": T.FLOAT32, "padding": "SAME"}
    last = {**given, **{name: [1, *values, 1] for name, values in sides.items()}, "data_format": "NDHWC"}
    first = {**given, **{name: [1, 1, *values] for name, values in sides.items()}, "data_format": "NCDHW"}
    rest = [] if window else [filters]
    [wanted] = oplet_results(Case(op, [x, *rest], last))
    [found] = oplet_results(Case(op, [np.ascontiguousarray(x.transpose(0, 4, 1, 2, 3)), *rest], first))
    np.testing.assert_allclose(found.transpose(0, 2, 3, 4, 1), wanted, rtol=1e-6, atol=1e-6)


def test_a_window_beyond_all_bounds_costs_nothing() -> None:
    given = {"T": T.FLOAT32, "ksize": five([2**31 - 1] * 3), "strides": five((1, 1, 1)), "padding": "SAME"}
    x = volume(1, 2, 3, 2, 1)
    [best] = oplet_results(Case("MaxPool3D", [x], given))
    assert (best == x.max()).all()
