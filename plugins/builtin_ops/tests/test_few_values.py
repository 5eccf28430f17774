"""What kernels compute in another way for few values than for many is the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from oplet.kernels.fixed_point import int32_of, multiply_by_quantized_multiplier, quantize_multiplier, quotient
from oplet_builtin_ops.arithmetic.fixed_point_functions import reciprocal
from oplet_builtin_ops.control.philox import PhiloxRandom, philox4x32, threefry2x32
from oplet_builtin_ops.layers import hybrid
from oplet_builtin_ops.suppression import non_max
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec

FLOATS = st.floats(-1e3, 1e3, width=32)
WORDS = st.integers(0, 2**32 - 1)
I32 = st.integers(-(2**31), 2**31 - 1)


@given(st.lists(I32, min_size=1, max_size=8), st.integers(0, 2**31 - 1), st.integers(-31, 31))
@settings(deadline=None)
def test_products_with_a_multiplier_are_those_among_many(values: list[int], multiplier: int, shift: int) -> None:
    few = np.array(values, np.int32)
    many = np.concatenate([few, np.arange(-50, 50, dtype=np.int32)])
    wanted = multiply_by_quantized_multiplier(many, multiplier, shift)[: few.size]
    found = multiply_by_quantized_multiplier(few, multiplier, shift)
    assert found.dtype == wanted.dtype
    assert found.tolist() == wanted.tolist()


@given(st.lists(st.integers(1, 2**32 - 1), min_size=1, max_size=8))
@settings(deadline=None)
def test_reciprocals_are_those_among_many(values: list[int]) -> None:
    few = np.array(values, np.int64)
    many = np.concatenate([few, np.arange(1, 30)])
    for found, wanted in zip(reciprocal(few, 12), reciprocal(many, 12)):
        assert found.dtype == wanted.dtype
        assert found.tolist() == wanted[: few.size].tolist()


@given(WORDS, WORDS, st.lists(st.tuples(WORDS, WORDS, WORDS, WORDS), min_size=1, max_size=6))
@settings(deadline=None)
def test_blocks_of_random_bits_are_those_among_many(k0: int, k1: int, counters: list[tuple[int, int, int, int]]) -> None:
    few = np.array(counters, np.uint64).T
    many = np.concatenate([few, np.arange(80, dtype=np.uint64).reshape(4, 20)], 1)
    assert philox4x32((k0, k1), tuple(few)).tolist() == philox4x32((k0, k1), tuple(many))[: len(counters)].tolist()
    assert threefry2x32((k0, k1), tuple(few[:2])).tolist() == threefry2x32((k0, k1), tuple(many[:2]))[: len(counters)].tolist()


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
@settings(deadline=None)
def test_a_stream_that_is_drawn_bit_by_bit_is_the_same(seed: int, seed2: int, start: int) -> None:
    whole, parts = PhiloxRandom(seed, seed2), PhiloxRandom(seed, seed2)
    whole.skip(start)
    parts.skip(start)
    drawn = [parts.words(count) for count in (1, 8, 3, 8)]
    assert np.concatenate(drawn).tolist() == whole.words(20).tolist()


@given(arrays.arrays(np.float32, st.tuples(st.integers(1, 4), st.integers(1, 20)), elements=FLOATS), st.booleans())
@settings(deadline=None)
def test_short_rows_are_quantized_like_long_ones(values: np.ndarray, asymmetric: bool) -> None:
    quantize = hybrid.quantize_asymmetric if asymmetric else hybrid.quantize_symmetric
    rows, columns = values.shape
    # The last value is repeated, so that neither the lowest nor the highest one changes.
    long = np.concatenate([values, np.repeat(values[:, -1:], 2 * hybrid._SHORT, 1)], 1)
    results = []
    for some in (values, long):
        target, scales = np.empty_like(some), np.empty(rows, np.float32)
        quantize(some, target, scales, np.empty_like(some))
        results.append((target[:, :columns].tolist(), scales.tolist()))
    assert results[0] == results[1]


@given(
    st.lists(st.one_of(st.floats(width=32), FLOATS, st.integers(-300, 300).map(lambda half: half / 2)), min_size=1, max_size=20),
    st.sampled_from([("int8", 3), ("uint8", 250), ("int16", 0), ("int8", -128)]),
    st.sampled_from([1.0, 0.5, 0.1, 3e-3, 7.7e20, 2e-38]),
)
@settings(deadline=None)
def test_a_few_numbers_are_quantized_as_among_many(numbers: list[float], target: tuple[str, int], scale: float) -> None:
    few = (np.array(numbers, np.float64) * (scale if max(map(abs, numbers)) < 1e3 else 1)).astype(np.float32)
    many = np.concatenate([few, np.zeros(200, np.float32)])
    found = []
    for values in (few, many):
        output = Spec(target[0], values.shape, scale=scale, zero_point=target[1])
        found.append(run_op(one_op_model("QUANTIZE", [Spec("float32", values.shape)], [output]), values)[0].tolist())
    assert found[0] == found[1][: few.size]


@given(
    arrays.arrays(np.float32, st.tuples(st.integers(1, 3), st.integers(1, 9)), elements=st.floats(width=32)), st.integers(1, 9)
)
@settings(deadline=None)
def test_the_largest_of_few_are_those_of_many(rows: np.ndarray, k: int) -> None:
    k = min(k, rows.shape[1])
    outputs = [Spec("float32", (1,)), Spec("int32", (1,))]
    model = one_op_model("TOPK_V2", [Spec("float32", rows.shape), np.array(k, np.int32)], outputs)
    best, where = run_op(model, rows)
    with np.errstate(all="ignore"):
        wanted = np.argsort(-rows, -1, kind="stable")[:, :k]
    np.testing.assert_array_equal(where, wanted)
    np.testing.assert_array_equal(best, np.take_along_axis(rows, wanted, -1))


@pytest.mark.parametrize("type", ["float32", "int32", "bool"])
@pytest.mark.parametrize("count", [1, 7, 16, 17])
def test_slices_for_the_same_row_are_added_in_order(count: int, type: str) -> None:
    rng = np.random.default_rng(count)
    places, updates = rng.integers(0, 5, (count, 1)).astype(np.int32), (rng.standard_normal((count, 3)) * 9).astype(type)
    inputs = [Spec("int32", places.shape), Spec(type, updates.shape), np.array([5, 3], np.int32)]
    wanted = np.zeros((5, 3), type)
    for [place], update in zip(places, updates):
        wanted[place] += update
    [found] = run_op(one_op_model("SCATTER_ND", inputs, [Spec(type, (1,))]), places, updates)
    np.testing.assert_array_equal(found, wanted)


SHAPES = st.lists(st.integers(1, 3), min_size=1, max_size=5)


@given(SHAPES, SHAPES)
@settings(deadline=None)
def test_shapes_broadcast_as_numpy_s(first: list[int], second: list[int]) -> None:
    shapes = [np.array(shape, np.int32) for shape in (first, second)]
    model = one_op_model("BROADCAST_ARGS", [Spec("int32", shape.shape) for shape in shapes], [Spec("int32", (1,))])
    try:
        wanted = np.broadcast_shapes(first, second)
    except ValueError:
        with pytest.raises(RuntimeError, match="do not broadcast together"):
            run_op(model, *shapes)
    else:
        assert run_op(model, *shapes)[0].tolist() == list(wanted)


@pytest.mark.parametrize("type", ["int8", "int16", "uint8"])
@pytest.mark.parametrize("scales", [(0.5, 0.7), (0.1, 0.013), (3e-5, 2e3), (0.5, 0.25), (1.0, 1.0), (7e8, 1e-9)])
def test_sums_are_those_of_the_definition(scales: tuple[float, float], type: str) -> None:
    info = np.iinfo(type)
    values = np.random.default_rng(5).integers(info.min, info.max + 1, (6, 5, 40)).astype(type)
    zero, other = (0, 0) if type == "int16" else (3, 7)
    inputs = [Spec(type, values.shape, scale=scales[0], zero_point=zero), np.array([1, 2], np.int32)]
    model = one_op_model("SUM", inputs, [Spec(type, (6,), scale=scales[1], zero_point=other)])
    sums = values.sum((1, 2), np.int32)
    given, wanted = (np.float32(scale) for scale in scales)
    if type == "uint8":
        pair = quantize_multiplier(quotient(float(given), float(wanted)))
        steps = multiply_by_quantized_multiplier(sums - np.int32(zero * 200), *pair)
    else:
        scale = given / wanted
        scaled = sums.astype(np.float32) * scale + np.float32(-zero) * scale * np.float32(200)
        steps = int32_of(np.copysign(np.floor(np.abs(scaled).astype(np.float64) + 0.5), scaled))
    np.testing.assert_array_equal(run_op(model, values)[0], np.clip(steps + np.int32(other), info.min, info.max))


def test_soft_suppression_chooses_what_the_queue_of_ties_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    def choices(levels: int) -> list[Any]:
        rng = np.random.default_rng(levels)
        corners = np.round(rng.random((50, 4)) * 6).astype(np.float32)
        scores = (rng.integers(1, levels, 50) / np.float32(levels)).astype(np.float32)
        leaders = non_max.Leaders(corners, np.arange(50), scores, 64)
        with np.errstate(all="ignore"):
            return [non_max._choose_softly(leaders, limit, 0.9, 0.01, 0.4) for limit in (1, 10, 40)]

    def tied(queue: Any) -> Any:
        raise non_max._Tied

    fast = [choices(levels) for levels in (3, 40, 100_000)]
    monkeypatch.setattr(non_max._Distinct, "pop", tied)
    assert fast == [choices(levels) for levels in (3, 40, 100_000)]
