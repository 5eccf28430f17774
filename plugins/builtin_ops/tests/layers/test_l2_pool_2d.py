"""L2_POOL_2D against LiteRT."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oplet.errors import OpletError
from oplet.schema.enums import ActivationFunctionType, Padding
from oplet.schema.options import Pool2DOptions
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec


def pool_model(type: str, **options: Any) -> bytes:
    return one_op_model("L2_POOL_2D", [Spec(type, (2, 7, 8, 3))], [Spec(type, (1,) * 4)], Pool2DOptions(**options))


@pytest.mark.parametrize("activation", [ActivationFunctionType.NONE, ActivationFunctionType.RELU_N1_TO_1])
@pytest.mark.parametrize("padding", list(Padding))
@pytest.mark.parametrize(
    ("size", "stride"), [((2, 2), (2, 2)), ((3, 1), (1, 2)), ((1, 4), (3, 1)), ((7, 8), (1, 1)), ((1, 1), (1, 1))]
)
def test_equals_litert(litert: Callable[..., Any], size: Any, stride: Any, padding: Any, activation: Any) -> None:
    model = pool_model(
        "float32",
        padding=padding,
        filter_height=size[0],
        filter_width=size[1],
        stride_h=stride[0],
        stride_w=stride[1],
        fused_activation_function=activation,
    )
    source = np.random.default_rng(0).normal(size=(2, 7, 8, 3)).astype(np.float32)
    np.testing.assert_allclose(run_op(model, source)[0], litert(model, source)[0], rtol=1e-5)


def test_has_no_quantized_form() -> None:
    with pytest.raises(OpletError, match="of type INT8, this op takes FLOAT32"):
        run_op(pool_model("int8", filter_height=2, filter_width=2, stride_h=1, stride_w=1), np.zeros((2, 7, 8, 3), np.int8))
