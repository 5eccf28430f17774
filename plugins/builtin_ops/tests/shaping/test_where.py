"""WHERE and UNIQUE: outputs whose length depends on the data."""

from __future__ import annotations

import numpy as np
import pytest

from oplet.errors import OpletError
from oplet.schema.enums import TensorType
from oplet.schema.options import UniqueOptions
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec


@pytest.mark.parametrize("type", ["bool", "float32", "int64", "int32", "int8", "uint8", "uint32"])
@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 3, 2), (0, 2)])
def test_where_gives_the_positions_of_what_is_not_zero(shape: tuple[int, ...], type: str) -> None:
    values = np.random.default_rng(0).integers(0, 2, shape).astype(type)
    (output,) = run_op(one_op_model("WHERE", [Spec(type, shape)], [Spec("int64", (1, 1))], version=2), values)
    assert output.dtype == np.int64
    np.testing.assert_array_equal(output, np.argwhere(values))


def test_where_of_a_scalar_is_refused() -> None:
    with pytest.raises(OpletError, match="at least one dimension"):
        run_op(one_op_model("WHERE", [Spec("bool", ())], [Spec("int64", (1, 1))]), np.array(True))


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("type", ["float32", "int8", "uint8", "int16", "int32", "int64"])
def test_unique_values_come_in_the_order_of_their_first_appearance(type: str, index: str) -> None:
    model = one_op_model(
        "UNIQUE",
        [Spec(type, (7,))],
        [Spec(type, (1,)), Spec(index, (1,))],
        UniqueOptions(idx_out_type=TensorType[index.upper()]),
    )
    values, numbers = run_op(model, np.array([5, 3, 5, 9, 3, 1, 9], type))
    assert values.tolist() == [5, 3, 9, 1]
    assert numbers.dtype == index
    assert numbers.tolist() == [0, 1, 0, 2, 1, 3, 2]


def test_unique_takes_a_vector() -> None:
    model = one_op_model("UNIQUE", [Spec("int32", (2, 2))], [Spec("int32", (1,)), Spec("int32", (1,))], UniqueOptions())
    with pytest.raises(OpletError, match="must be a vector"):
        run_op(model, np.zeros((2, 2), np.int32))
