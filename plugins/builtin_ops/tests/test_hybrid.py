from __future__ import annotations

import numpy as np
import pytest

from oplet_builtin_ops.layers.hybrid import quantize_asymmetric, quantize_symmetric


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


@pytest.mark.parametrize("quantize", [quantize_symmetric, quantize_asymmetric])
@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1.0, 1e30])
def test_few_rows_become_what_many_rows_become(quantize: object, scale: float) -> None:
    random = np.random.default_rng(0)
    rows = (random.normal(0.3, 1, (40, 9)) * scale).tolist()
    integers, scales = run(quantize, rows)
    for row, wanted, wanted_scale in zip(rows, integers, scales):
        found, found_scale = run(quantize, [row])
        np.testing.assert_array_equal(found[0], wanted)
        assert found_scale[0] == wanted_scale


@pytest.mark.parametrize("quantize", [quantize_symmetric, quantize_asymmetric])
@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_not_hidden(quantize: object, value: float) -> None:
    integers, scales = run(quantize, [[1, value, 2]])
    assert np.isnan(integers * scales).any()
