"""float16 nodes of kernels for float32: computed in single precision, rounded once, whatever is constant or arrives at run time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oplet.errors import OpletError
from oplet.schema.options import FullyConnectedOptions, QuantizeOptions, ReducerOptions
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec


def halves(*shape: int) -> Any:
    return np.random.default_rng(0).normal(size=shape).astype(np.float16)


@pytest.mark.parametrize("constant", [True, False])
def test_a_matrix_product_of_halves_is_rounded_once(constant: bool) -> None:
    x, w, b = halves(5, 64), halves(3, 64), halves(3)
    specs = [Spec("float16", x.shape), w if constant else Spec("float16", w.shape), b if constant else Spec("float16", b.shape)]
    model = one_op_model("FULLY_CONNECTED", specs, [Spec("float16", (5, 3))], FullyConnectedOptions())
    expected = (x.astype(np.float64) @ w.T.astype(np.float64) + b).astype(np.float16)
    found = run_op(model, x, *([] if constant else [w, b]))[0]
    assert found.dtype == np.float16
    np.testing.assert_allclose(found.astype(np.float64), expected.astype(np.float64), rtol=1e-3)


def test_axes_may_arrive_at_run_time() -> None:
    x = halves(3, 40)
    model = one_op_model("MEAN", [Spec("float16", x.shape), Spec("int32", (1,))], [Spec("float16", (1,))], ReducerOptions())
    for axis in (0, 1):
        expected = x.astype(np.float64).mean(axis).astype(np.float16)
        found = run_op(model, x, np.array([axis], np.int32))[0]
        np.testing.assert_allclose(found.astype(np.float64), expected.astype(np.float64), rtol=1e-3, atol=1e-4)


def test_halves_and_floats_do_not_mix() -> None:
    model = one_op_model("SUB", [Spec("float16", (2,)), Spec("float32", (2,))], [Spec("float16", (2,))])
    with pytest.raises(OpletError, match="of type FLOAT32 where other tensors are of type FLOAT16"):
        run_op(model, halves(2), np.zeros(2, np.float32))


@pytest.mark.parametrize("scale", [0.05, 1.7, 0.003921569])
def test_every_half_is_quantized_as_xnnpack_does(scale: float, litert: Callable[..., Any]) -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    x = x[np.isfinite(x)]
    model = one_op_model("QUANTIZE", [Spec("float16", x.shape)], [Spec("int8", x.shape, scale, 3)], QuantizeOptions())
    np.testing.assert_array_equal(run_op(model, x)[0], litert(model, x, kernels=None)[0])
