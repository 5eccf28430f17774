from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oplet import Interpreter
from oplet.schema.enums import ActivationFunctionType, Padding
from oplet.schema.options import BatchMatMulOptions, Conv2DOptions, DepthwiseConv2DOptions, FullyConnectedOptions, SoftmaxOptions
from oplet_builtin_ops.layers import program
from oplet_testing import Spec, one_op_model, run_op

Function = Callable[..., Any]

RELU = ActivationFunctionType.RELU
LAYERS: dict[str, tuple[Any, ...]] = {
    "1x1": ("CONV_2D", (1, 33, 30, 24), (40, 1, 1, 24), Conv2DOptions(stride_h=1, stride_w=1), 0),
    "3x3": ("CONV_2D", (2, 17, 15, 6), (9, 3, 3, 6), Conv2DOptions(stride_h=2, stride_w=1, fused_activation_function=RELU), 0),
    "7 rows": ("CONV_2D", (1, 7, 7, 16), (8, 3, 3, 16), Conv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1), 0),
    "depthwise": (
        "DEPTHWISE_CONV_2D", (1, 40, 36, 50), (1, 5, 5, 50),
        DepthwiseConv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1, depth_multiplier=1), 3,
    ),
    "steps": (
        "DEPTHWISE_CONV_2D", (2, 21, 20, 8), (1, 3, 3, 8),
        DepthwiseConv2DOptions(padding=Padding.SAME, stride_h=2, stride_w=2, depth_multiplier=1), 3,
    ),
    "dense": ("FULLY_CONNECTED", (50, 32), (16, 32), FullyConnectedOptions(), 0),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_threads_do_not_change_results(name: str, kind: str, layer: Function, monkeypatch: pytest.MonkeyPatch) -> None:
    op, source, weights, options, axis = LAYERS[name]
    model, feeds = layer(op, kind, source, weights, options, axis=axis)
    monkeypatch.setattr(program, "_WORTH_SHARING", 0.0)

    def run(threads: int) -> Any:
        interpreter = Interpreter(model_content=model, num_threads=threads)
        interpreter.allocate_tensors()
        results = []
        for repeat in range(2):
            for detail, feed in zip(interpreter.get_input_details(), feeds):
                interpreter.set_tensor(detail["index"], np.roll(feed, repeat))
            interpreter.invoke()
            results.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
        return np.stack(results)

    expected = run(1)
    for threads in (2, 3):
        if kind == "float":
            np.testing.assert_allclose(run(threads), expected, rtol=1e-5, atol=1e-4)
        else:
            np.testing.assert_array_equal(run(threads), expected)


def _run(model: bytes, threads: int, *feeds: Any) -> Any:
    return run_op(model, *feeds, num_threads=threads)[0]


@pytest.mark.parametrize(
    ("op", "shapes", "result"), [("SOFTMAX", [(3, 5, 7)], (3, 5, 7)), ("BATCH_MATMUL", [(5, 2, 3), (5, 3, 4)], (5, 2, 4))]
)
def test_rows_and_matrices_are_shared_out_as_they_are(
    op: str, shapes: list[tuple[int, ...]], result: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(0)
    feeds = [random.standard_normal(shape).astype(np.float32) for shape in shapes]
    options = SoftmaxOptions(beta=1.0) if op == "SOFTMAX" else BatchMatMulOptions()
    model = one_op_model(op, [Spec(np.float32, shape) for shape in shapes], [Spec(np.float32, result)], options)
    expected = _run(model, 1, *feeds)
    monkeypatch.setattr(program, "_WORTH_SHARING", 0.0)
    for threads in (2, 3, 8):
        np.testing.assert_array_equal(_run(model, threads, *feeds), expected)
