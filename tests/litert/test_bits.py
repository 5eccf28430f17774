"""With AVX-512 compiled kernels of floats have the bits of XNNPACK, which LiteRT runs by default: what dynamic-range layers quantize is then the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oplet import Interpreter
from oplet.schema.options import FullyConnectedOptions, GeluOptions, MulOptions, ReducerOptions, SoftmaxOptions
from oplet.schema.tables import Table
from oplet_testing import Graph, Op, Spec, graph_model, invoke, one_op_model

litert = pytest.importorskip("ai_edge_litert.interpreter")
levels = pytest.importorskip("oplet_compiled_ops.library.levels")
pytestmark = pytest.mark.skipif(
    not levels.has_masks(), reason="this processor's level has no AVX-512, or its kernels are not asked for"
)

NUMBERS = np.concatenate([
    np.random.default_rng(0).standard_normal(3000) * 3,
    np.random.default_rng(1).uniform(-80, 80, 3000),
    [0.0, 1.0, -1.0, 7.9, -7.9, 5.1, -5.1, 1e-30, 1e5, -1e5],
]).astype(np.float32)  # fmt: skip


def same_bits(model: bytes, x: Any) -> None:
    [wanted] = invoke(litert.Interpreter(model_content=model), x)
    for threads in (1, 2):
        [found] = invoke(Interpreter(model_content=model, num_threads=threads), x)
        np.testing.assert_array_equal(found.view(np.int32), wanted.view(np.int32))


@pytest.mark.parametrize(
    ("op", "options"),
    [("LOGISTIC", None), ("RSQRT", None), ("SIN", None), ("COS", None), ("TANH", None),
     ("GELU", GeluOptions(approximate=False)), ("GELU", GeluOptions(approximate=True))],
)  # fmt: skip
@pytest.mark.parametrize("count", [5, 100, len(NUMBERS)])
def test_functions_have_xnnpack_s_bits(op: str, options: Table | None, count: int) -> None:
    x = np.abs(NUMBERS[-count:]) + np.float32(1e-20) if op == "RSQRT" else NUMBERS[-count:]
    same_bits(one_op_model(op, [Spec("float32", x.shape)], [Spec("float32", x.shape)], options), x)


@pytest.mark.parametrize("columns", [1, 3, 16, 33, 64, 100, 200, 1001])
def test_rows_have_xnnpack_s_bits(columns: int) -> None:
    x = np.random.default_rng(columns).standard_normal((40, columns)).astype(np.float32)
    axis, whole, one = np.array([1], np.int32), Spec("float32", x.shape), Spec("float32", [40])
    same_bits(one_op_model("SOFTMAX", [whole], [whole], SoftmaxOptions(beta=1.0)), x * 3)
    for op in ("MEAN", "SUM"):
        same_bits(one_op_model(op, [whole, axis], [one], ReducerOptions(keep_dims=False)), x)
        # XNNPACK sums squares in another order than what has been squared.
        for square in (Op("MUL", "x x", "y", MulOptions()), Op("SQUARE", "x", "y")):
            tensors = {"x": whole, "axis": axis, "y": whole, "z": one}
            same_bits(graph_model(Graph(tensors, "x", "z", [square, Op(op, "y axis", "z", ReducerOptions(keep_dims=False))])), x)


@pytest.mark.skipif(not levels.has_byte_products(), reason="LiteRT's kernels with sums of products of bytes may be others")
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("rows", [1, 7])
def test_dynamic_range_layers_have_xnnpack_s_bits(rows: int, biased: bool) -> None:
    random = np.random.default_rng(rows)
    weights = random.integers(-127, 128, (70, 64)).astype(np.int8)
    scales = (random.random(70) * 0.01 + 0.001).tolist()
    bias = random.standard_normal(70).astype(np.float32) if biased else None
    inputs = [Spec("float32", (rows, 64)), Spec("int8", weights.shape, scales, [0] * 70, 0, weights), bias]
    model = one_op_model("FULLY_CONNECTED", inputs, [Spec("float32", (rows, 70))], FullyConnectedOptions(), version=9)
    same_bits(model, random.standard_normal((rows, 64)).astype(np.float32))
