"""STABLEHLO_DOT_GENERAL and STABLEHLO_CONVOLUTION against their definitions."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from oplet.errors import OpletError
from oplet.schema.stablehlo_options import StablehloConvolutionOptions, StablehloDotGeneralOptions
from oplet_testing import call_op
from oplet_testing.one_op import Spec


def longs(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def draw(type: Any, *shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).integers(-100, 100, shape).astype(type)


def run(op: str, a: np.ndarray, b: np.ndarray, result: Any, options: Any, rank: int) -> np.ndarray:
    return call_op(op, [a, b], [Spec(result, (1,) * rank)], options)[0]


@pytest.mark.parametrize(
    ("a", "b", "batching", "contracting", "formula"),
    [
        ((3, 4), (4, 5), ((), ()), ((1,), (0,)), "ij,jk->ik"),
        ((2, 3, 4), (5, 4, 2), ((0,), (2,)), ((2,), (1,)), "bij,kjb->bik"),
        ((4, 2, 3, 5), (3, 5, 4), ((), ()), ((2, 3, 0), (0, 1, 2)), "aijb,jba->i"),
        ((2, 3), (4,), ((), ()), ((), ()), "ij,k->ijk"),
        ((3, 0), (0, 5), ((), ()), ((1,), (0,)), "ij,jk->ik"),
    ],
)
@pytest.mark.parametrize(
    ("type", "result"),
    [
        ("float32", "float32"),
        ("float16", "float16"),
        ("int8", "int32"),
        ("int32", "int32"),
        ("int8", "int8"),
        ("complex64", "complex64"),
    ],
)
def test_dot_general(type: str, result: str, a: Any, b: Any, batching: Any, contracting: Any, formula: str) -> None:
    options = StablehloDotGeneralOptions(
        lhs_batching_dimensions=longs(*batching[0]),
        rhs_batching_dimensions=longs(*batching[1]),
        lhs_contracting_dimensions=longs(*contracting[0]),
        rhs_contracting_dimensions=longs(*contracting[1]),
    )
    left, right = draw(type, *a) // 10 if type == "float16" else draw(type, *a), draw(type, *b)
    wide = "complex128" if type == "complex64" else "float64" if type == "float16" else "int64"
    want = np.einsum(formula, left.astype(wide), right.astype(wide)).astype(result)
    got = run("STABLEHLO_DOT_GENERAL", left, right, result, options, want.ndim)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    np.testing.assert_array_equal(got, want)


def convolve(a: np.ndarray, b: np.ndarray, o: dict[str, Any]) -> np.ndarray:
    """The definition, for maps (batch, h, w, channels) and filters (h, w, channels, filters)."""
    (batch, *sizes, _), (*taps, inner, filters) = a.shape, b.shape
    low, high = o["padding"][::2], o["padding"][1::2]
    spread = [(n - 1) * d + 1 for n, d in zip(sizes, o["lhs_dilation"])]
    spans = [(n - 1) * d + 1 for n, d in zip(taps, o["rhs_dilation"])]
    outs = [max(0, (n + p + q - s) // t + 1) for n, p, q, s, t in zip(spread, low, high, spans, o["window_strides"])]
    groups, batch_groups = o["feature_group_count"], o["batch_group_count"]
    result = np.zeros((batch // batch_groups, *outs, filters), np.int64)
    for n, y, x, f in product(*map(range, result.shape)):
        image = n + (f // (filters // batch_groups)) * (batch // batch_groups)
        first = f // (filters // groups) * inner
        for v, u in product(*map(range, taps)):
            place = []
            for position, tap, axis in ((y, v, 0), (x, u, 1)):
                tap = taps[axis] - 1 - tap if o["window_reversal"][axis] else tap
                place.append(position * o["window_strides"][axis] + tap * o["rhs_dilation"][axis] - low[axis])
            if all(0 <= p < s and p % d == 0 for p, s, d in zip(place, spread, o["lhs_dilation"])):
                p, q = (p // d for p, d in zip(place, o["lhs_dilation"]))
                result[n, y, x, f] += a[image, p, q, first : first + inner].astype(np.int64) @ b[v, u, :, f].astype(np.int64)
    return result


DEFAULTS: dict[str, Any] = {
    "window_strides": (1, 1),
    "padding": (0, 0, 0, 0),
    "lhs_dilation": (1, 1),
    "rhs_dilation": (1, 1),
    "window_reversal": (False, False),
    "feature_group_count": 1,
    "batch_group_count": 1,
}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"window_strides": (2, 1), "padding": (1, 2, 0, 3)},
        {"lhs_dilation": (2, 3), "padding": (2, 1, -1, 2)},
        {"rhs_dilation": (2, 1), "window_reversal": (True, False)},
        {"feature_group_count": 2, "window_reversal": (False, True)},
        {"batch_group_count": 2},
        {"padding": (-3, -3, 0, 0)},
    ],
    ids=str,
)
@pytest.mark.parametrize(("type", "result"), [("float32", "float32"), ("int8", "int32"), ("int8", "int8")])
def test_convolution(type: str, result: str, changes: dict[str, Any]) -> None:
    chosen = {**DEFAULTS, **changes}
    maps, filters = draw(type, 2, 5, 6, 4) // 4, draw(type, 2, 3, 4 // chosen["feature_group_count"], 4) // 4
    want = convolve(maps, filters, chosen).astype(result)
    # Channels first outside, filters with their outputs first, to see that dimension numbers are followed.
    table = StablehloConvolutionOptions(
        **{k: longs(*v) if isinstance(v, tuple) else v for k, v in chosen.items() if k != "window_reversal"},
        window_reversal=np.array(chosen["window_reversal"]),
        input_batch_dimension=0,
        input_feature_dimension=1,
        input_spatial_dimensions=longs(2, 3),
        kernel_output_feature_dimension=0,
        kernel_input_feature_dimension=1,
        kernel_spatial_dimensions=longs(3, 2),
        output_batch_dimension=3,
        output_feature_dimension=0,
        output_spatial_dimensions=longs(1, 2),
    )
    got = run("STABLEHLO_CONVOLUTION", maps.transpose(0, 3, 1, 2), filters.transpose(3, 2, 1, 0), result, table, 4)
    np.testing.assert_array_equal(got, want.transpose(3, 1, 2, 0))


def test_convolution_refuses_groups_that_do_not_fit() -> None:
    table = StablehloConvolutionOptions(
        input_feature_dimension=1,
        kernel_input_feature_dimension=0,
        kernel_output_feature_dimension=1,
        output_feature_dimension=1,
        feature_group_count=3,
        batch_group_count=1,
    )
    with pytest.raises(OpletError, match="4 channels in 3 groups"):
        run("STABLEHLO_CONVOLUTION", draw("float32", 2, 4), draw("float32", 4, 2), "float32", table, 2)


def test_dot_general_refuses_sizes_that_differ() -> None:
    table = StablehloDotGeneralOptions(lhs_contracting_dimensions=longs(1), rhs_contracting_dimensions=longs(0))
    with pytest.raises(OpletError, match="must have the same sizes"):
        run("STABLEHLO_DOT_GENERAL", draw("float32", 2, 3), draw("float32", 4, 2), "float32", table, 2)
