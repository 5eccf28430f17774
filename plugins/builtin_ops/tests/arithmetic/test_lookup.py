"""The tables behind the quantized ops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oplet import TensorType
from oplet_builtin_ops.arithmetic.fixed_point_functions import exp_on_negative_values, reciprocal
from oplet_builtin_ops.arithmetic.lookup import (
    every_value,
    interpolated,
    interpolation_table,
    lookup,
    lookup_table,
    sampled_table,
)


@pytest.mark.parametrize("size", [0, 5, 5000])
@pytest.mark.parametrize("type", [TensorType.INT8, TensorType.UINT8, TensorType.INT16])
def test_looking_up_applies_the_rule_to_each_value(type: TensorType, size: int) -> None:
    dtype: Any = {TensorType.INT8: np.int8, TensorType.UINT8: np.uint8, TensorType.INT16: np.int16}[type]
    limits = np.iinfo(dtype)
    source = np.random.default_rng(0).integers(limits.min, limits.max, size, endpoint=True).astype(dtype)
    table = lookup_table(type, TensorType.INT8, lambda values: values * 2 + 1)
    output = np.empty(size, np.int8)
    lookup(table, source, output)()
    np.testing.assert_array_equal(output, np.clip(source.astype(np.int64) * 2 + 1, -128, 127))


def test_a_sampled_table_rounds_the_function_to_steps() -> None:
    table = sampled_table(TensorType.INT8, np.sqrt, 0.5, -128, 0.25, -128)
    # sqrt((-120 + 128) * 0.5) = 2 = 8 steps.
    assert table[np.int8(-120)] == -120
    assert len(table) == 256


def test_an_interpolated_table_stays_close_to_the_function() -> None:
    table = interpolated(interpolation_table(np.sin, 3.0 / 32768, 0, 1 / 32768, 0))
    values = every_value(TensorType.INT16)
    exact = np.clip(np.sin(values * 3.0 / 32768) * 32768, -32768, 32767)
    # The samples span 65535 values, the lines 65536: at the ends they are one value apart, three steps of this function.
    assert np.abs(table - exact).max() < 5


def test_fixed_point_exponential_is_accurate() -> None:
    x = -np.arange(0, 2**31, 99991, dtype=np.int64).astype(np.int32)
    exact = np.exp(x.astype(np.float64) / 2**26)
    np.testing.assert_allclose(exp_on_negative_values(x, 5) / 2.0**31, exact, atol=1e-6)


@pytest.mark.parametrize("values", [[1 << 19], [1 << 19, 3 << 20, 123456789, (1 << 32) - 1]])
def test_fixed_point_reciprocal_is_accurate(values: list[Any]) -> None:
    x = np.array(values, np.int64)
    value, bits = reciprocal(x, 12)
    np.testing.assert_allclose(value / 2.0**31 / 2.0**bits, 2.0**19 / x * 1.0, rtol=1e-7)


@pytest.mark.parametrize("target", [np.int8, np.int16, np.float32])
@pytest.mark.parametrize("source", [np.int8, np.int16])
def test_many_values_are_looked_up_a_piece_at_a_time(source: type, target: type) -> None:
    table = np.random.default_rng(0).integers(-100, 100, 1 << 8 * np.dtype(source).itemsize).astype(target)
    values = np.random.default_rng(1).integers(-128, 128, 150_001).astype(source)
    output = np.empty(values.size, target)
    lookup(table, values, output)()
    np.testing.assert_array_equal(output, table[values])
