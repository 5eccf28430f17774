"""LceQuantize, LceDequantize and LceBMaxPool2d: their rules, one value at a time, and what larq's own interpreter gives."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from plugins.larq_ops.tests.layers import packed
from plugins.larq_ops.tests.others import cases, dequantize, pool, quantize

from oplet_testing import OpContract, one_op_model
from oplet_testing.one_op import Spec

CASES = cases()
RANDOM = np.random.default_rng(3)
WORDS = RANDOM.integers(-(2**31), 2**31, (2, 5, 6, 2)).astype(np.int32)


@pytest.mark.parametrize("name", CASES)
def test_answers_are_larq_s_own(name: str, run: Any, recorded: dict[str, Any]) -> None:
    model, feed = CASES[name]
    [ours] = run(model, feed)
    np.testing.assert_array_equal(ours, recorded[name])
    assert ours.dtype == recorded[name].dtype


def test_what_is_below_zero_is_a_bit(run: Any) -> None:
    values = np.array([[-1.0, 0.0, -0.0, np.nan, 1.0, -np.inf, -1.1754945e-38] * 7], np.float32)
    assert run(quantize(values), values)[0].tolist() == packed(values).tolist()


def test_subnormal_numbers_are_zeros_as_in_larq_s_runtime(run: Any) -> None:
    assert run(quantize(values := np.array([[-1e-40]], np.float32)), values)[0] == 0


def test_truths_come_back(run: Any) -> None:
    truths = RANDOM.integers(0, 2, (3, 70)).astype(bool)
    [words] = run(quantize(truths), truths)
    np.testing.assert_array_equal(run(dequantize(words, "bool", 70), words)[0], truths)


@pytest.mark.parametrize(("scale", "zero", "wanted"), [(1e-38, 0, [127, -128]), (1e30, 5, [5, 5]), (2.0, 0, [1, -1])])
def test_steps_to_one_are_limited(scale: float, zero: int, wanted: list[int], run: Any) -> None:
    model = dequantize(np.array([[2]], np.int32), "int8", 2, scale=scale, zero_point=zero)
    assert run(model, np.array([[2]], np.int32))[0].tolist() == [wanted]


def test_int8_without_a_scale_is_refused(run: Any) -> None:
    for quantization in ({}, {"scale": 0.0, "zero_point": 0}):
        with pytest.raises(RuntimeError, match="scale.*LceDequantize"):
            run(dequantize(WORDS, "int8", 64, **quantization), WORDS)


def test_another_number_of_maps_keeps_the_channels(run: Any) -> None:
    [values] = run(dequantize(WORDS[:1], "float32", 40), WORDS, resize=True)
    assert values.shape == (2, 5, 6, 40)


@pytest.mark.parametrize("channels", [32, 65, 0])
def test_channels_that_do_not_fit_the_words_are_refused(channels: int, run: Any) -> None:
    with pytest.raises(RuntimeError, match="words.*LceDequantize"):
        run(dequantize(WORDS, "float32", channels), WORDS)


@pytest.mark.parametrize("op", ["LceQuantize", "LceDequantize"])
def test_scalars_are_refused(op: str, run: Any) -> None:
    of, to = ("float32", "int32") if op == "LceQuantize" else ("int32", "float32")
    with pytest.raises(RuntimeError, match=f"last dimension.*{op}"):
        run(one_op_model(op, [Spec(of, ())], [Spec(to, ())]), np.zeros((), of))


@pytest.mark.parametrize("padding", [0, 1])
def test_the_largest_of_a_window_is_minus_one_where_all_are(padding: int, run: Any) -> None:
    (height, width), (down, across) = (3, 2), (2, 3)
    [ours] = run(pool(WORDS, padding, (height, width), (down, across)), WORDS)
    before = [
        max(0, (out - 1) * s + f - n) // 2 if padding == 0 else 0
        for out, s, f, n in zip(ours.shape[1:3], (down, across), (height, width), WORDS.shape[1:3])
    ]
    for y, x in itertools.product(range(ours.shape[1]), range(ours.shape[2])):
        top, left = y * down - before[0], x * across - before[1]
        window = WORDS[:, max(top, 0) : top + height, max(left, 0) : left + width]
        np.testing.assert_array_equal(ours[:, y, x], np.bitwise_and.reduce(window, axis=(1, 2)))


def test_a_window_far_larger_than_the_map_is_the_map(run: Any) -> None:
    [ours] = run(pool(WORDS, 0, (2**31 - 1, 2**31 - 1), (9, 9)), WORDS)
    np.testing.assert_array_equal(ours[:, 0, 0], np.bitwise_and.reduce(WORDS, axis=(1, 2)))


@pytest.mark.parametrize("key", ["padding", "filter_height", "filter_width", "stride_height", "stride_width"])
@pytest.mark.parametrize("value", [-1, 0, 2**40, 1.5, "x"])
def test_options_that_no_pool_has_are_refused(key: str, value: Any, run: Any) -> None:
    if (key, value) == ("padding", 0):
        return
    options = {"padding": 0, "filter_height": 2, "filter_width": 2, "stride_height": 1, "stride_width": 1, key: value}
    model = one_op_model("LceBMaxPool2d", [Spec("int32", (1, 4, 4, 1))], [Spec("int32", (1, 4, 4, 1))], custom_options=options)
    with pytest.raises(RuntimeError, match=f"{key}|{key.partition('_')[2]}.*LceBMaxPool2d"):
        run(model, np.zeros((1, 4, 4, 1), np.int32))


class TestContractOfQuantize(OpContract):
    model, inputs = CASES["floats_70"][0], [np.linspace(-1, 1, 2 * 3 * 70, dtype=np.float32).reshape(2, 3, 70)]


class TestContractOfIntegers(OpContract):
    model, inputs = CASES["integers_33_5"][0], [CASES["integers_33_5"][1]]


class TestContractOfDequantize(OpContract):
    model, inputs = CASES["steps_70_0.4_3"][0], [CASES["steps_70_0.4_3"][1]]


class TestContractOfPool(OpContract):
    model, inputs = pool(WORDS, 0, (3, 2), (2, 1)), [WORDS]
