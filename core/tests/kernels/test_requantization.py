"""Requantization: the definition, and the numbers by which float64 gives the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oplet.kernels.fixed_point import multiply_by_quantized_multiplier, quantize_multiplier
from oplet.kernels.requantization import Requantization, Rounding

TYPES = {np.int8: (-128, 127), np.uint8: (0, 255), np.int16: (-32768, 32767)}


def in_floats(layer: Requantization, accumulators: np.ndarray) -> np.ndarray:
    """What a kernel computes with the factors, nudges and lifts."""
    scaled = (accumulators + layer.offsets) * layer.factors
    if layer.rounding is Rounding.FLOAT:
        steps = np.copysign(np.floor(np.abs(scaled) + 0.5), scaled)
    else:
        steps = np.floor(scaled + np.where(scaled < 0, 0.5 - layer.nudges + 2 * layer.lifts, 0.5 + layer.nudges))
    return np.clip(steps + layer.zero_point, layer.low, layer.high)


@given(
    st.sampled_from(list(Rounding)),
    st.sampled_from(list(TYPES)),
    st.lists(st.floats(2.0**-24, 2.0), min_size=1, max_size=17),
    st.lists(st.integers(-(2**20), 2**20), min_size=1, max_size=40),
    st.integers(-(2**12), 2**12),
    st.booleans(),
)
def test_where_float64_fits_it_gives_what_the_definition_gives(
    rounding: Rounding, dtype: type, scales: list[float], values: list[int], offset: int, relu: bool
) -> None:
    low, high = TYPES[dtype]
    zero_point = (low + high) // 2
    offsets = np.full(len(scales), offset)
    layer = Requantization(np.array(scales), offsets, 2.0**21, zero_point, zero_point if relu else low, high, rounding)
    accumulators = np.array(values)[:, None] + np.zeros(len(scales), np.int64)
    if layer.fits(np.dtype(dtype)):
        output = np.empty(accumulators.shape, dtype)
        layer.requantize(accumulators, output)
        np.testing.assert_array_equal(output, in_floats(layer, accumulators))


@pytest.mark.parametrize("rounding", list(Rounding))
@pytest.mark.parametrize("dtype", list(TYPES))
def test_float64_fits_usual_layers(rounding: Rounding, dtype: type) -> None:
    scales, (low, high) = np.array([0.0007, 0.9]), TYPES[dtype]
    assert Requantization(scales, np.zeros(2, np.int64), 2.0**20, 0, low, high, rounding).fits(np.dtype(dtype))


@given(st.floats(2.0**-31, 2.0**4), st.integers(-(2**31), 2**31 - 1))
def test_one_channel_is_multiplied_by_its_quantized_multiplier(scale: float, value: int) -> None:
    output = np.empty((1, 1), np.int16)
    Requantization(np.array([scale]), np.zeros(1, np.int64), 2.0**32, 0, -32768, 32767).requantize(np.array([[value]]), output)
    wanted = multiply_by_quantized_multiplier(np.array(value, np.int32), *quantize_multiplier(scale))
    assert output.item() == min(max(int(wanted), -32768), 32767)


def test_a_left_shift_that_may_wrap_around_is_left_to_the_definition() -> None:
    layer = Requantization(np.array([3.0]), np.zeros(1, np.int64), 2.0**30, 0, -128, 127)
    assert not layer.fits(np.dtype(np.int8))
    output = np.empty((1, 1), np.int8)
    layer.requantize(np.array([[2**30 + 1]]), output)
    # Shifted left by two in 32 bits it is 4.
    assert output.item() == 3


def test_channels_behind_the_last_group_of_eight_are_rounded_twice_away_from_zero() -> None:
    layer = Requantization(np.full(9, 0.25), np.zeros(9, np.int64), 2.0**21, 0, -128, 127, Rounding.UP)
    output = np.empty((1, 9), np.int8)
    layer.requantize(np.full((1, 9), -2), output)
    assert output.tolist() == [[0] * 8 + [-1]]


def test_each_channel_has_a_limit_of_its_own() -> None:
    # The second would wrap around at the first one's limit, and the third lose bits at it.
    scales, limits = np.array([0.01, 3.0, 2.0**-20 / 3]), np.array([2.0**30, 2.0**20, 2.0**20])
    layer = Requantization(scales, np.zeros(3, np.int64), limits, 0, -128, 127)
    assert layer.fits(np.dtype(np.int8))
    same = Requantization(scales, np.zeros(3, np.int64), 2.0**30, 0, -128, 127)
    assert same.fitting(np.dtype(np.int8)).tolist() == [True, False, False]


@given(
    st.sampled_from(list(Rounding)),
    st.sampled_from(list(TYPES)),
    st.lists(st.tuples(st.integers(0, 40), st.floats(0.5, 1), st.integers(0, 30), st.integers(-(2**30), 2**30)), min_size=1),
    st.booleans(),
)
def test_constants_are_the_outputs_of_all_accumulators(
    rounding: Rounding, dtype: type, channels: list[tuple[int, float, int, int]], relu: bool
) -> None:
    low, high = TYPES[dtype]
    zero_point = (low + high) // 2
    scales = np.array([np.ldexp(fraction, -exponent) for exponent, fraction, _, _ in channels])
    offsets = np.array([offset for *_, offset in channels])
    reach = np.array([(1 << bits) - 1 for _, _, bits, _ in channels])
    layer = Requantization(scales, offsets, reach + np.abs(offsets), zero_point, zero_point if relu else low, high, rounding)
    constant, outputs = layer.constants()
    random = np.random.default_rng(0)
    accumulators = np.concatenate([[-reach, reach, 0 * reach], random.integers(-reach, reach + 1, (50, len(reach)))])
    found = np.empty(accumulators.shape, np.int64)
    layer.requantize(accumulators, found)
    np.testing.assert_array_equal(found[:, constant], np.broadcast_to(outputs, found.shape)[:, constant])
    assert constant[reach == 0].all()


def test_a_filter_that_never_reaches_a_step_is_constant() -> None:
    offsets = np.array([1 << 30, 7, 5])
    layer = Requantization(np.array([1e-9, 1e-9, 0.1]), offsets, np.array([2.0**30, 2.0**24, 2.0**10]), -3, -128, 127)
    constant, outputs = layer.constants()
    assert constant.tolist() == [True, True, False]
    assert outputs[:2].tolist() == [-2, -3]
