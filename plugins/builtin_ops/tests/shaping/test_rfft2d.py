"""RFFT2D against LiteRT."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oplet.errors import OpletError
from oplet.testing import one_op_model, run_op
from oplet.testing.one_op import Spec


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("lengths", [(4, 8), (8, 4), (16, 2), (2, 16), (4, 4)])
@pytest.mark.parametrize("shape", [(4, 8), (2, 3, 5, 7)])
def test_equals_litert(litert: Callable[..., Any], shape: Any, lengths: Any, constant: bool) -> None:
    source, sizes = np.random.default_rng(1).normal(size=shape).astype(np.float32), np.array(lengths, np.int32)
    model = one_op_model(
        "RFFT2D", [Spec("float32", shape), sizes if constant else Spec("int32", (2,))], [Spec("complex64", (1,) * len(shape))]
    )
    feeds = [source] if constant else [source, sizes]
    mine, theirs = run_op(model, *feeds)[0], litert(model, *feeds)[0]
    assert mine.dtype == np.complex64
    np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("lengths", [(4, 6), (0, 4), (3, 4)])
def test_refuses_lengths_that_are_no_power_of_two(lengths: Any) -> None:
    model = one_op_model("RFFT2D", [Spec("float32", (4, 4)), np.array(lengths, np.int32)], [Spec("complex64", (1, 1))])
    with pytest.raises(OpletError, match=r"length \d is not a power of two"):
        run_op(model, np.zeros((4, 4), np.float32))
