"""Nodes that models spend their time in are run by compiled kernels: whoever changes what the numpy ones prepare finds out here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from plugins.compiled_ops.tests.compiled import is_compiled

from oplet.schema.options import Conv2DOptions, DepthwiseConv2DOptions, FullyConnectedOptions
from oplet_testing import Spec, one_op_model

WINDOWS: dict[str, Any] = {"stride_h": 1, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}
LAYERS: dict[str, tuple[Any, Any, Any]] = {
    "CONV_2D": ((1, 8, 8, 16), (16, 1, 1, 16), Conv2DOptions(**WINDOWS)),
    "DEPTHWISE_CONV_2D": ((1, 8, 8, 16), (1, 3, 3, 16), DepthwiseConv2DOptions(depth_multiplier=1, **WINDOWS)),
    "FULLY_CONNECTED": ((3, 16), (8, 16), FullyConnectedOptions()),
}


@pytest.mark.parametrize("kind", ["float32", "int8", "hybrid"])
@pytest.mark.parametrize("op", LAYERS)
def test_layers_of_constant_weights_are_compiled(op: str, kind: str) -> None:
    shape, weights_shape, options = LAYERS[op]
    if kind == "hybrid" and op == "DEPTHWISE_CONV_2D":
        shape = (1, 4, 4, 16)  # numpy runs larger ones
    random = np.random.default_rng(0)
    weights: Any = random.standard_normal(weights_shape).astype("float32")
    if kind != "float32":
        weights = Spec("int8", weights_shape, [0.01], [0], 0, (weights * 30).astype("int8"))
    x, y = (Spec("int8", shape, 0.1, 3), Spec("int8", shape, 0.2, -1)) if kind == "int8" else [Spec("float32", shape)] * 2
    assert is_compiled(one_op_model(op, [x, weights, None], [y], options))


@pytest.mark.parametrize(("rows", "units", "served"), [(1, 4096, True), (2, 1 << 17, True), (1, 1 << 17, False)])
def test_a_single_row_of_floats_is_compiled_where_the_weights_are_few(rows: int, units: int, served: bool) -> None:
    weights = np.ones((units, 64), np.float32)
    model = one_op_model(
        "FULLY_CONNECTED", [Spec("float32", (rows, 64)), weights, None], [Spec("float32", (rows, units))], FullyConnectedOptions()
    )
    assert is_compiled(model) is served


@pytest.mark.parametrize("op", ["GELU", "TANH", "SQRT", "RSQRT", "LOGISTIC"])
def test_maps_of_floats_are_compiled(op: str) -> None:
    assert is_compiled(one_op_model(op, [Spec("float32", (3,))], [Spec("float32", (3,))]))


@pytest.mark.parametrize("op", ["ADD", "SUB", "MUL", "SQUARED_DIFFERENCE"])
def test_pairs_of_floats_of_one_shape_are_compiled_so_that_they_can_be_joined(op: str) -> None:
    assert is_compiled(one_op_model(op, [Spec("float32", (3,))] * 2, [Spec("float32", (3,))]))
