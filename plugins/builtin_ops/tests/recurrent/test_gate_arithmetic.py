"""The fixed-point arithmetic of quantized LSTM cells."""

from __future__ import annotations

import numpy as np
import pytest

from oplet.kernels.fixed_point import multiply_by_quantized_multiplier
from oplet_builtin_ops.arithmetic.gate_tables import logistic_table, tanh_table
from oplet_builtin_ops.arithmetic.integer_products import rescale_calls
from oplet_builtin_ops.recurrent.integer_layer_norm import inverse_square_root


@pytest.mark.parametrize("integer_bits", range(7))
def test_tanh_is_odd_and_close_to_the_real_one(integer_bits):
    table = tanh_table(integer_bits)
    x = np.arange(-32768, 32768) * 2.0 ** (integer_bits - 15)
    assert np.abs(table - 32768 * np.tanh(x)).max() < 13
    np.testing.assert_array_equal(table[1:32768], -table[:32768:-1])


def test_the_logistic_function_is_close_to_the_real_one():
    x = np.arange(-32768, 32768) / 4096
    assert np.abs(logistic_table() - 32768 / (1 + np.exp(-x))).max() < 7


@pytest.mark.parametrize("x", [1, 2, 3, 100, 4095, 123456, 2**29, 2**31 - 1])
def test_inverse_square_roots_are_close_to_the_real_ones(x):
    multiplier, shift = inverse_square_root(x)
    assert multiplier * 2.0 ** (shift - 31) == pytest.approx(x**-0.5, rel=2e-4)


@pytest.mark.parametrize("shifts", [[-3, -1, -7], [0, 0, 0], [0, -2, 0], [3, -2, 0]])
def test_rescaling_is_the_fixed_point_definition(shifts):
    values = np.random.default_rng(0).integers(-(2**20), 2**20, (50, 3))
    multipliers = np.array([2**30, 1518500250, 2**31 - 1])
    wanted = multiply_by_quantized_multiplier(values.astype(np.int32), multipliers, np.array(shifts))
    for function, arguments in rescale_calls(values, multipliers, shifts, np.empty_like(values)):
        function(*arguments)
    np.testing.assert_array_equal(values, wanted)
