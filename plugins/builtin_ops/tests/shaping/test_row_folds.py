"""Reductions of short rows and of long groups, which go another way than numpy's own."""

from __future__ import annotations

import numpy as np
import pytest

from oplet.schema.options import CumsumOptions
from oplet_builtin_ops.shaping.row_folds import fold_rows
from oplet_builtin_ops.shaping.segments import combined, grouped
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec


@pytest.mark.parametrize("combine", [np.add, np.maximum, np.minimum, np.multiply])
@pytest.mark.parametrize("shape", [(70, 2), (3, 50, 3), (9000, 16), (63, 4), (100, 1), (100, 17)])
@pytest.mark.parametrize("type", ["int8", "int32", "int64", "float32"])
def test_rows_are_folded_whatever_their_length(combine: np.ufunc, shape: tuple[int, ...], type: str) -> None:
    values = np.random.default_rng(0).integers(-9, 9, shape).astype(type)
    target = np.empty((*shape[:-1], 1), type)
    fold_rows(combine, values, target)()
    np.testing.assert_allclose(target, combine.reduce(values, -1, dtype=type, keepdims=True), rtol=1e-6)


def test_nan_of_a_short_row_stays() -> None:
    values = np.zeros((100, 3), np.float32)
    values[7, 1] = np.nan
    largest = np.empty(100, np.float32)
    fold_rows(np.maximum, values, largest)()
    assert np.flatnonzero(np.isnan(largest)).tolist() == [7]


@pytest.mark.parametrize("combine", [np.add, np.maximum])
@pytest.mark.parametrize("count", [3, 40, 70000])
def test_groups_are_folded_whatever_their_length(combine: np.ufunc, count: int) -> None:
    random = np.random.default_rng(count)
    ids, rows = random.integers(-1, count, 900).astype(np.int32), random.integers(-99, 99, (900, 5)).astype(np.int32)
    groups = grouped(ids)
    assert groups.ids.tolist() == sorted(set(ids[ids >= 0].tolist()))
    for number, row in zip(groups.ids, combined(combine, rows, groups)):
        np.testing.assert_array_equal(row, combine.reduce(rows[ids == number], 0))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_wide_running_sums_are_numpy_s(axis: int, exclusive: bool, reverse: bool) -> None:
    values = np.random.default_rng(axis).integers(-99, 99, (4, 5, 80)).astype(np.int32)
    options = CumsumOptions(exclusive=exclusive, reverse=reverse)
    model = one_op_model(
        "CUMSUM", [Spec("int32", values.shape), np.array(axis, np.int32)], [Spec("int32", values.shape)], options
    )
    seen = np.flip(values, axis) if reverse else values
    wanted = np.cumsum(seen, axis) - (seen if exclusive else 0)
    np.testing.assert_array_equal(run_op(model, values)[0], np.flip(wanted, axis) if reverse else wanted)
