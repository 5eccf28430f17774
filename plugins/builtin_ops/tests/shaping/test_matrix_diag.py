"""MATRIX_DIAG and MATRIX_SET_DIAG."""

from __future__ import annotations

import numpy as np
import pytest

from oplet.errors import OpletError
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec

TYPES = ["float32", "uint8", "int8", "int16", "int32", "int64"]


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 1, 2), (2, 0)])
def test_rows_become_diagonals(shape: tuple[int, ...], type: str) -> None:
    values = np.random.default_rng(0).integers(1, 9, shape).astype(type)
    (output,) = run_op(one_op_model("MATRIX_DIAG", [Spec(type, shape)], [Spec(type, (1,))]), values)
    np.testing.assert_array_equal(output, np.eye(shape[-1], dtype=type) * values[..., None])


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (4, 2), (2, 3, 2), (2, 0, 3)])
def test_diagonals_are_replaced(shape: tuple[int, ...], type: str) -> None:
    rng = np.random.default_rng(0)
    values = rng.integers(0, 9, shape).astype(type)
    diagonal = rng.integers(10, 20, (*shape[:-2], min(shape[-2:]))).astype(type)
    model = one_op_model("MATRIX_SET_DIAG", [Spec(type, shape), Spec(type, diagonal.shape)], [Spec(type, (1,))])
    wanted = values.copy()
    for i in range(diagonal.shape[-1]):
        wanted[..., i, i] = diagonal[..., i]
    np.testing.assert_array_equal(run_op(model, values, diagonal)[0], wanted)


def test_diagonals_must_fit() -> None:
    model = one_op_model("MATRIX_SET_DIAG", [Spec("int32", (2, 3)), Spec("int32", (3,))], [Spec("int32", (2, 3))])
    with pytest.raises(OpletError, match=r"must have shape \[2\]"):
        run_op(model, np.zeros((2, 3), np.int32), np.zeros(3, np.int32))
