"""Weights are transposed and summed exactly, however many there are."""

from __future__ import annotations

import numpy as np
import pytest

from oplet_builtin_ops.layers.weights import row_sums, sums_and_widths, transposed


@pytest.mark.parametrize("shape", [(1, 3, 5), (2, 300, 250), (1, 1000, 70), (1, 64, 2000)])
def test_transposes_are_contiguous_and_of_the_type_asked_for(shape: tuple[int, ...]) -> None:
    matrices = np.random.default_rng(0).integers(-128, 128, shape).astype(np.int8)
    turned = transposed(matrices, np.float32)
    assert turned.dtype == np.float32
    assert turned.flags.c_contiguous
    assert np.array_equal(turned, matrices.transpose(0, 2, 1))


@pytest.mark.parametrize("type", [np.int8, np.uint8, np.int32])
@pytest.mark.parametrize("depth", [0, 7, 1 << 16, (1 << 16) + 3])
def test_sums_of_rows_are_exact(type: type[np.generic], depth: int) -> None:
    lowest, highest = np.iinfo(type).min, np.iinfo(type).max  # type: ignore[type-var]
    rows = np.stack([np.full(depth, lowest), np.full(depth, highest), np.full(depth, 1)]).astype(type)
    assert row_sums(rows).tolist() == rows.astype(np.int64).sum(axis=1).tolist()
    assert row_sums(rows).dtype == np.int64


@pytest.mark.parametrize("depth", [0, 7, 300, 1 << 16, (1 << 16) + 3])
def test_sums_and_widths_of_rows_of_int8_are_exact(depth: int) -> None:
    random = np.random.default_rng(depth).integers(-128, 128, (300 if depth < 400 else 1, depth))
    rows = np.concatenate([random, np.full((1, depth), -128), np.full((1, depth), 127)]).astype(np.int8)
    sums, widths = sums_and_widths(rows)
    assert sums.dtype == widths.dtype == np.int64
    assert sums.tolist() == rows.sum(axis=1, dtype=np.int64).tolist()
    assert widths.tolist() == np.abs(rows.astype(np.int64)).sum(axis=1).tolist()
    assert sums_and_widths(rows[:0])[1].shape == (0,)
