from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oplet import TensorType
from oplet.kernels import fixed_point as fp
from oplet.kernels.activations import activation_range
from oplet.schema.enums import ActivationFunctionType as Act

INT32 = st.integers(-(2**31), 2**31 - 1)


def high_mul(a: int, b: int) -> int:
    return min(2**31 - 1, math.floor(Fraction(a * b, 2**31) + Fraction(1, 2)))


def divide_pot(x: int, exponent: int) -> int:
    magnitude = math.floor(Fraction(abs(x), 2**exponent) + Fraction(1, 2))
    return magnitude if x >= 0 else -magnitude


def wrap32(x: int) -> int:
    return (x + 2**31) % 2**32 - 2**31


def multiply(x: int, multiplier: int, shift: int) -> int:
    return divide_pot(high_mul(wrap32(x << max(shift, 0)), multiplier), max(-shift, 0))


@given(INT32, INT32)
def test_high_mul_rounds_halves_up_and_saturates(a: int, b: int) -> None:
    assert fp.saturating_rounding_doubling_high_mul(a, b) == high_mul(a, b)


def test_high_mul_of_the_two_smallest_saturates() -> None:
    assert fp.saturating_rounding_doubling_high_mul(-(2**31), -(2**31)) == 2**31 - 1


@given(INT32, st.integers(0, 31))
def test_division_by_a_power_of_two_rounds_halves_away_from_zero(x: int, exponent: int) -> None:
    assert fp.rounding_divide_by_pot(np.int32(x), exponent) == divide_pot(x, exponent)


@given(INT32, st.integers(2**30, 2**31 - 1), st.integers(-31, 30))
def test_multiply_rounds_twice(x: int, multiplier: int, shift: int) -> None:
    assert fp.multiply_by_quantized_multiplier(np.int32(x), multiplier, shift) == multiply(x, multiplier, shift)


def test_multiply_broadcasts_one_multiplier_a_channel() -> None:
    draw = random.Random(0)
    multipliers = np.array([draw.randrange(2**30, 2**31) for _ in range(5)], np.int32)
    shifts = np.array([-9, -1, 0, 2, -31])
    x = np.array([[draw.randrange(-(2**31), 2**31) for _ in range(5)] for _ in range(7)], np.int32)
    expected = [[multiply(int(v), int(m), int(s)) for v, m, s in zip(row, multipliers, shifts, strict=True)] for row in x]
    result = fp.multiply_by_quantized_multiplier(x, multipliers, shifts)
    assert result.dtype == np.int32
    assert result.tolist() == expected


@given(st.integers(-(2**47), 2**47 - 1), st.integers(2**30, 2**31 - 1), st.integers(-31, 7))
def test_the_int64_form_uses_a_16_bit_multiplier_and_rounds_once(x: int, multiplier: int, shift: int) -> None:
    reduced = (multiplier + 2**15) >> 16 if multiplier < 0x7FFF0000 else 0x7FFF
    expected = wrap32(math.floor(Fraction(x * reduced, 2 ** (15 - shift)) + Fraction(1, 2)))
    assert fp.multiply_by_quantized_multiplier_int64(np.int64(x), multiplier, shift) == expected


@given(st.floats(2.0**-31, 2.0**30))
def test_quantized_multipliers_are_within_half_a_unit(real: float) -> None:
    multiplier, shift = fp.quantize_multiplier(real)
    assert 2**30 <= multiplier < 2**31
    assert abs(Fraction(multiplier) * Fraction(2) ** (shift - 31) - Fraction(real)) <= Fraction(2) ** (shift - 31) / 2


@pytest.mark.parametrize(
    ("real", "expected"),
    [(0.0, (0, 0)), (1.0, (2**30, 1)), (0.5, (2**30, 0)), (1 - 2**-40, (2**30, 1)), (2.0**-33, (0, 0)), (-0.75, (-3 * 2**29, 0))],
)
def test_quantize_multiplier(real: float, expected: tuple[int, int]) -> None:
    assert fp.quantize_multiplier(real) == expected


@pytest.mark.parametrize("real", [math.nan, math.inf])
def test_a_factor_that_is_not_finite_counts_as_zero(real: float) -> None:
    assert fp.quantize_multiplier(real) == (0, 0)
    multipliers, shifts = fp.quantize_multipliers([real, 0.5])
    assert (multipliers.tolist(), shifts.tolist()) == ([0, 2**30], [0, 0])


def test_floats_beyond_int32_become_the_lowest_one() -> None:
    assert fp.int32_of([1.9, -1.9, 2.0**31, -(2.0**32), math.nan, math.inf]).tolist() == [1, -1, *[-(2**31)] * 4]


def test_a_shift_to_the_left_counts_modulo_32() -> None:
    assert fp.multiply_by_quantized_multiplier(np.array([3, -5], np.int32), 2**30, 33).tolist() == [3, -5]


def test_halves_below_zero_are_rounded_up_where_vectors_do_it() -> None:
    values = np.array([-3, -1, 1, 3], np.int32)
    assert fp.multiply_rounding_up(values, 2**30, 0).tolist() == [-1, 0, 1, 2]
    assert fp.multiply_rounding_up(values * 2, 2**30, -1).tolist() == [-1, 0, 1, 2]
    assert fp.multiply_by_quantized_multiplier(values * 2, 2**30, -1).tolist() == [-2, -1, 1, 2]


@pytest.mark.parametrize(
    ("activation", "type", "scale", "zero_point", "expected"),
    [
        (Act.NONE, TensorType.INT8, 0.1, 3, (-128, 127)),
        (Act.TANH, TensorType.INT8, 0.1, 3, (-128, 127)),
        (Act.RELU, TensorType.INT8, 0.1, 3, (3, 127)),
        (Act.RELU6, TensorType.UINT8, 0.1, 3, (3, 63)),
        (Act.RELU6, TensorType.INT16, 0.5, 0, (0, 12)),
        (Act.RELU_N1_TO_1, TensorType.INT8, 0.4, 0, (-3, 3)),
    ],
)
def test_activations_become_clamps(
    activation: Act, type: TensorType, scale: float, zero_point: int, expected: tuple[int, int]
) -> None:
    assert activation_range(activation, type, scale, zero_point) == expected
