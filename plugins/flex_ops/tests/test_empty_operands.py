"""Operands without elements are answered, or refused with a sentence, as any others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from plugins.flex_ops.tests.nodedefs import flex_options

from oplet import TensorType as T
from oplet.errors import OpletError
from oplet_testing import Spec, call_op

F = {"T": T.FLOAT32}


def give(op: str, attributes: dict[str, Any], inputs: list[Any], type: str) -> Any:
    options = flex_options(op, attributes)
    return call_op(f"Flex{op}", inputs, [Spec(type, [0])], custom_options=options, plugins=["oplet-flex-ops"])[0]


def floats(*shape: int) -> Any:
    return np.ones(shape, np.float32)


def test_a_scalar_has_one_place_and_no_index() -> None:
    attributes = {"T": T.INT32, "Tindices": T.INT64}
    shape, value = np.zeros(0, np.int64), np.int32(3)
    dense = give("SparseToDense", attributes, [np.zeros((1, 0), np.int64), shape, np.array([7], np.int32), value], "int32")
    assert dense.tolist() == 7
    with pytest.raises(OpletError, match="not in ascending order"):
        give("SparseToDense", attributes, [np.zeros((2, 0), np.int64), shape, np.array([4, 0], np.int32), value], "int32")


@pytest.mark.parametrize("batch", [(), (0,), (2,)])
def test_systems_without_unknowns_have_solutions_without_values(batch: tuple[int, ...]) -> None:
    found = give("TridiagonalSolve", F, [floats(*batch, 3, 0), floats(*batch, 0, 2)], "float32")
    assert found.shape == (*batch, 0, 2)


def test_a_batch_of_no_pictures_is_refused() -> None:
    attributes = {**F, "Targmax": T.INT64, "ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
    with pytest.raises(OpletError, match="holds no values"):
        give(
            "MaxPoolGradWithArgmax",
            attributes,
            [floats(0, 4, 4, 1), floats(0, 2, 2, 1), np.zeros((0, 2, 2, 1), np.int64)],
            "float32",
        )


def test_filters_of_no_channels_are_refused() -> None:
    attributes = {**F, "strides": [1, 1, 1, 1, 1], "padding": "SAME"}
    sizes = np.array([1, 1, 1, 0, 2], np.int32)
    with pytest.raises(OpletError, match="the channels of the input, 0, must be"):
        give("Conv3DBackpropFilterV2", attributes, [floats(1, 2, 2, 2, 0), sizes, floats(1, 2, 2, 2, 2)], "float32")
