"""DYNAMIC_UPDATE_SLICE against LiteRT."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oplet.errors import OpletError
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec


@pytest.mark.parametrize("starts", [(0, 0), (2, 1), (-3, 9), (1, 2)])
@pytest.mark.parametrize("sizes", [(2, 2), (4, 5), (1, 0), (4, 1)])
@pytest.mark.parametrize(
    "type", ["float32", "float16", "float64", "int8", "uint8", "int16", "int32", "int64", "bool", "uint32", "complex64"]
)
def test_equals_litert(litert: Callable[..., Any], type: str, sizes: Any, starts: Any) -> None:
    rng = np.random.default_rng(0)
    operand, update = (rng.integers(0, 100, shape).astype(type) for shape in ((4, 5), sizes))
    for index in ("int32", "int64"):
        inputs = [Spec(type, (4, 5)), Spec(type, sizes), Spec(index, (2,))]
        model = one_op_model("DYNAMIC_UPDATE_SLICE", inputs, [Spec(type, (4, 5))], version=3)
        feeds = operand, update, np.array(starts, index)
        np.testing.assert_array_equal(run_op(model, *feeds)[0], litert(model, *feeds)[0])


@pytest.mark.parametrize(
    ("update", "starts", "message"),
    [((5, 5), (2,), "no larger along any axis"), ((2,), (2,), "rank"), ((2, 2), (3,), r"must have shape \[2\]")],
)
def test_refuses_what_does_not_fit(update: Any, starts: Any, message: str) -> None:
    inputs = [Spec("float32", (4, 5)), Spec("float32", update), Spec("int32", starts)]
    model = one_op_model("DYNAMIC_UPDATE_SLICE", inputs, [Spec("float32", (4, 5))])
    with pytest.raises(OpletError, match=message):
        run_op(model, np.zeros((4, 5), np.float32), np.zeros(update, np.float32), np.zeros(starts, np.int32))
