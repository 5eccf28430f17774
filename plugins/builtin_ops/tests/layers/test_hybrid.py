from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oplet import OpResolverType, TensorType
from oplet.schema.options import FullyConnectedOptions
from oplet_builtin_ops.layers.hybrid import quantize_asymmetric, quantize_symmetric, quantize_to_even
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec


def run(quantize: object, values: list[list[float]]) -> tuple[np.ndarray, np.ndarray]:
    source = np.array(values, np.float32)
    target, spare, scales = np.empty_like(source), np.empty_like(source), np.empty(len(source), np.float32)
    quantize(source, target, scales, spare)  # type: ignore[operator]
    return target, scales


def test_symmetric_rows_reach_127_and_round_halves_away_from_zero() -> None:
    integers, scales = run(quantize_symmetric, [[254, 1, -1, 3], [-0.5, 0.25, 0, 0.125]])
    assert integers.tolist() == [[127, 1, -1, 2], [-127, 64, 0, 32]]
    np.testing.assert_allclose(scales, [2, 0.5 / 127], rtol=1e-7)


def test_asymmetric_rows_use_all_steps_and_keep_zero_exact() -> None:
    integers, scales = run(quantize_asymmetric, [[0, 255, 100, 51], [-1, 1, 0, 0.5]])
    assert integers.tolist()[0] == [0, 255, 100, 51]
    assert scales[0] == 1
    assert integers[1, 2] == 0
    np.testing.assert_allclose(integers[1] * scales[1], [-1, 1, 0, 0.5], atol=scales[1])


def test_rows_of_zeros_have_scale_one() -> None:
    for quantize in (quantize_symmetric, quantize_asymmetric):
        integers, scales = run(quantize, [[0, 0]])
        assert integers.tolist() == [[0, 0]]
        assert scales.tolist() == [1]


@pytest.mark.parametrize("quantize", [quantize_symmetric, quantize_asymmetric, quantize_to_even])
@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1.0, 1e30])
def test_few_rows_become_what_many_rows_become(quantize: object, scale: float) -> None:
    random = np.random.default_rng(0)
    rows = (random.normal(0.3, 1, (40, 9)) * scale).tolist()
    integers, scales = run(quantize, rows)
    for row, wanted, wanted_scale in zip(rows, integers, scales):
        found, found_scale = run(quantize, [row])
        np.testing.assert_array_equal(found[0], wanted)
        assert found_scale[0] == wanted_scale


@pytest.mark.parametrize("quantize", [quantize_symmetric, quantize_asymmetric, quantize_to_even])
@pytest.mark.filterwarnings("ignore:invalid value", "ignore:divide by zero")
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_not_hidden(quantize: object, value: float) -> None:
    integers, scales = run(quantize, [[1, value, 2]])
    assert np.isnan(integers * scales).any()


def test_values_are_rounded_before_the_zero_point_is_added_as_litert_rounds_them() -> None:
    """2.5 steps around a zero point of -27: the sum would round to -25, 2.5 by itself to 3."""
    # The range is 255 steps of 1, from -101 to 154.
    integers, scales = run(quantize_asymmetric, [[-101, 154, 2.5, -2.5, 0.5]])
    assert scales.tolist() == [1]
    assert integers.tolist() == [[-101, 154, 3, -3, 1]]
    integers, scales = run(quantize_asymmetric, [[-101, 154, 2.5, -2.5, 0.5]] * 9)
    assert integers.tolist() == [[-101, 154, 3, -3, 1]] * 9


@pytest.mark.parametrize("kernels", ["BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES"], ids=["reference", "optimized"])
@pytest.mark.parametrize("count", [16, 19])
@pytest.mark.parametrize("rows", [3, 400])
def test_every_value_is_quantized_to_the_step_that_litert_gives_it(
    rows: int, count: int, kernels: str, litert: Callable[..., Any]
) -> None:
    """Weights that are 1 on the diagonal show each step; values of few digits make halves."""
    random = np.random.default_rng(count)
    values = random.normal(0.3, 1, (rows, count)).astype(np.float32)
    values[: rows // 2] = np.round(values[: rows // 2] * 20) / 20
    source, weights = Spec("float32", [rows, count]), Spec("int8", [count, count], [1.0], [0], data=np.eye(count, dtype=np.int8))
    options = FullyConnectedOptions(asymmetric_quantize_inputs=True)
    model = one_op_model("FULLY_CONNECTED", [source, weights], [Spec("float32", [rows, count])], options, version=9)
    np.testing.assert_array_equal(
        run_op(model, values, experimental_op_resolver_type=OpResolverType[kernels])[0], litert(model, values, kernels=kernels)[0]
    )


def test_rounding_to_even_keeps_zero_and_rounds_halves_to_even() -> None:
    integers, scales = run(quantize_to_even, [[-101, 154, 2.5, -2.5, 0.5, 0], [0, 0, 0, 0, 0, 0]])
    assert scales.tolist() == [1, 1]
    assert integers.tolist() == [[-101, 154, 2, -2, 0, 0], [0] * 6]


@pytest.mark.parametrize("plugins", [["builtin_ops"], None], ids=["numpy", "compiled"])
@pytest.mark.parametrize("depth", [30, 32, 64, 66])
@pytest.mark.parametrize(("rows", "units"), [(1, 4), (4, 32), (17, 5)])
def test_the_lowest_of_4_bits_is_minus_8_in_every_shape(rows: int, units: int, depth: int, plugins: Any) -> None:
    """LiteRT's optimized kernel takes it for 16 from 32 values a row and 4 units on; 4-bit nets with rotated weights are full of it."""
    rng = np.random.default_rng(0)
    weights, source = rng.integers(-8, -6, (units, depth)), rng.normal(size=(rows, depth)).astype(np.float32)
    scales = rng.uniform(0.01, 0.02, units).astype(np.float32)
    packed = Spec(TensorType.INT4, weights.shape, scale=scales, zero_point=[0] * units, data=weights)
    out = Spec("float32", (rows, units))
    model = one_op_model(
        "FULLY_CONNECTED", [Spec("float32", source.shape), packed, None], [out], FullyConnectedOptions(), version=10
    )
    exact = source.astype(np.float64) @ (weights * scales[:, None].astype(np.float64)).T
    np.testing.assert_allclose(run_op(model, source, plugins=plugins)[0], exact, atol=0.1)
