from __future__ import annotations

import numpy as np
import pytest

from oplet.kernels import fixed_point as fp
from oplet.kernels.requantization import Rounding
from oplet_builtin_ops.arithmetic.requantize import Requantizer


def run(requantizer: Requantizer, accumulators: np.ndarray, dtype: type) -> np.ndarray:
    output = np.empty(accumulators.shape, dtype)
    accumulators = accumulators.copy()
    for function, arguments in requantizer.calls(accumulators, output, np.empty(output.size)):
        function(*arguments)
    return output


def by_definition(r: Requantizer, accumulators: np.ndarray) -> np.ndarray:
    total = accumulators.astype(np.int64) + r.offsets
    multipliers, shifts = fp.quantize_multipliers(r.scales)
    if r.rounding is Rounding.DOUBLE:
        scaled = fp.multiply_by_quantized_multiplier(total.astype(np.int32), multipliers, shifts)
    elif r.rounding is Rounding.UP:
        narrow, vectors = total.astype(np.int32), len(multipliers) // 8 * 8
        scaled = fp.multiply_by_quantized_multiplier(narrow, multipliers, shifts)
        scaled[:, :vectors] = fp.multiply_rounding_up(narrow, multipliers, shifts)[:, :vectors]
    elif r.rounding is Rounding.WIDE:
        scaled = fp.multiply_by_quantized_multiplier_int64(total, multipliers, shifts)
    else:
        product = total * r.scales
        scaled = np.where(product < 0, -np.floor(-product + 0.5), np.floor(product + 0.5))
    return np.clip(scaled.astype(np.int64) + r.zero_point, r.low, r.high)


#: Powers of two put accumulators exactly on the thresholds of both roundings.
SCALES = [2.0**-3, 2.0**-8, 3 * 2.0**-9, 0.0078, 0.00031, 0.74, 1.0, 1.7, 5.0]


@pytest.mark.parametrize("rounding", list(Rounding))
@pytest.mark.parametrize(("dtype", "zero_point", "low", "high"), [
    (np.int8, -128, -128, 127), (np.int8, 3, -128, 127), (np.int8, -5, -5, 90), (np.uint8, 128, 0, 255),
    (np.uint8, 0, 0, 255), (np.int16, 0, -32768, 32767), (np.int16, 0, 0, 32767),
])  # fmt: skip
def test_every_block_equals_the_definition(rounding: Rounding, dtype: type, zero_point: int, low: int, high: int) -> None:
    draw = np.random.default_rng(0)
    scales = np.array(SCALES)
    offsets = draw.integers(-2000, 2000, len(scales))
    near = np.arange(-3000, 3000)[:, None] + np.zeros(len(scales))
    far = draw.integers(-(2**24), 2**24, (500, len(scales)))
    accumulators = np.concatenate([near, far]).astype(np.float32)
    r = Requantizer(scales, offsets, 2.0**24 + 2000, zero_point, low, high, rounding)
    np.testing.assert_array_equal(run(r, accumulators, dtype), by_definition(r, accumulators))


def test_the_fast_way_serves_usual_int8_layers() -> None:
    assert Requantizer(np.array([0.0007, 0.9]), np.zeros(2, np.int64), 2.0**31 - 1, 0, -128, 127).fits(np.dtype(np.int8))


@pytest.mark.parametrize("low", [-128, 3])
@pytest.mark.parametrize("scale", [2.0**-13, 3 * 2.0**-17, 2.0**-20, 2.0**-14 * 1.1])
def test_small_accumulators_may_have_tiny_scales(scale: float, low: int) -> None:
    r = Requantizer(np.array([scale, 0.001]), np.array([-(2**19), 5]), 2.0**21 - 1, 3, low, 127)
    accumulators = np.arange(-(2**20), 2**20, 17)[:, None] + np.zeros(2, np.float32)
    assert r.fits(np.dtype(np.int8))
    np.testing.assert_array_equal(run(r, accumulators, np.int8), by_definition(r, accumulators))


@pytest.mark.parametrize("low", [-128, 3])
def test_large_accumulators_may_cancel_against_large_offsets(low: int) -> None:
    offset = -(2**26)
    r = Requantizer(np.array([2.0**-12, 0.0003]), np.array([offset, offset + 1]), 2.0**27, 3, low, 127)
    accumulators = np.arange(-(2**19), 2**19, 3)[:, None] - np.array([offset, offset], np.float64)
    assert r.fits(np.dtype(np.int8))
    np.testing.assert_array_equal(run(r, accumulators, np.int8), by_definition(r, accumulators))


@pytest.mark.parametrize("scale", [2.0**-25, 2.0**-14 * 1.1])
def test_large_accumulators_with_tiny_scales_take_the_integer_way(scale: float) -> None:
    r = Requantizer(np.array([scale]), np.array([17]), 2.0**30, 3, -128, 127)
    accumulators = np.arange(-(2**30), 2**30, 2**20 - 7)[:, None].astype(np.float64)
    assert not r.fits(np.dtype(np.int8))
    np.testing.assert_array_equal(run(r, accumulators, np.int8), by_definition(r, accumulators))


def test_a_product_just_below_a_half_is_not_rounded_up() -> None:
    r = Requantizer(np.array([np.nextafter(0.5, 0), 0.5]), np.zeros(2, np.int64), 100, 7, -128, 127, Rounding.FLOAT)
    accumulators = np.array([[1, 1], [-1, -1], [2, 2]], np.float32)
    np.testing.assert_array_equal(run(r, accumulators, np.int8), [[7, 8], [7, 6], [8, 8]])


@pytest.mark.parametrize("rounding", [Rounding.DOUBLE, Rounding.WIDE])
@pytest.mark.parametrize(("dtype", "zero_point", "high"), [(np.int8, -128, 127), (np.int8, 3, 90), (np.uint8, 0, 255)])
def test_sums_of_scaled_products_equal_the_definition(rounding: Rounding, dtype: type, zero_point: int, high: int) -> None:
    draw = np.random.default_rng(1)
    scales = np.array(SCALES)
    r = Requantizer(scales, draw.integers(-2000, 2000, len(scales)), 2.0**20, zero_point, zero_point, high, rounding)
    assert r.takes_scaled(np.dtype(dtype))
    values = draw.integers(-255, 256, (4000, 24)).astype(np.float64)
    weights = draw.integers(-127, 128, (len(scales), 24))
    output = np.empty((len(values), len(scales)), dtype)
    products = np.pad(values, ((0, 0), (0, 1)), constant_values=1) @ r.scaled(weights).T
    for function, arguments in r.calls(products, output, np.empty(output.size, np.float32), scaled=True):
        function(*arguments)
    np.testing.assert_array_equal(output, by_definition(r, values @ weights.T))


@pytest.mark.parametrize("rounding", list(Rounding))
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(("dtype", "low"), [(np.int8, -128), (np.int8, 3), (np.int16, -32768)])
def test_channels_that_do_not_fit_are_divided_from_the_others(rounding: Rounding, wide: bool, dtype: type, low: int) -> None:
    draw = np.random.default_rng(0)
    scales, offsets = np.array(SCALES * 2), draw.integers(-2000, 2000, 2 * len(SCALES))
    reach = np.full(len(scales), 2**20)
    scales[2], offsets[2], reach[2] = 1e-9, 1 << 30, 0  # a filter of zeros
    scales[5], reach[5] = 1e-9, 2**23  # one that reaches no step
    # One that does, but not exactly in float64.
    hard = {Rounding.WIDE: (2.0**-30 / 3, 2**40), Rounding.FLOAT: (np.nextafter(0.5, 0), 2**10)}
    scales[11], reach[11] = hard.get(rounding, (2.0**-16 / 3, 2**26))
    r = Requantizer(scales, offsets, reach + np.abs(offsets), 3, low, np.iinfo(dtype).max, rounding)
    assert not r.fits(np.dtype(dtype))
    accumulators = draw.integers(-reach, reach + 1, (400, len(scales))).astype(np.float64 if wide else np.float32)
    wanted = np.empty(accumulators.shape, dtype)
    r.requantize(accumulators, wanted)
    np.testing.assert_array_equal(run(r, accumulators, dtype), wanted)
