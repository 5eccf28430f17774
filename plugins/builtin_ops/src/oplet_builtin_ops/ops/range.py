"""RANGE: start, start + delta, ... up to but not including the limit. Numerics: tflite/kernels/range.cc"""

from __future__ import annotations

import math

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Shape, Thunk
from oplet.kernels.operands import ensure_operands, ensure_same_type
from oplet.kernels.shapes import defer_or_resize, defer_or_run

_TYPES = (TensorType.FLOAT32, TensorType.INT32, TensorType.INT64)


def _shapes(node: Node) -> list[Shape]:
    start, limit, delta = (tensor.data.reshape(()).item() for tensor in node.inputs)
    ensure(
        (delta > 0 and start <= limit) or (delta < 0 and start >= limit),
        f"delta is {delta}, which does not lead from start {start} to limit {limit}.",
    )
    if node.inputs[0].type == TensorType.FLOAT32:
        with np.errstate(over="ignore", invalid="ignore"):
            steps = float(np.abs((np.float32(limit) - np.float32(start)) / np.float32(delta)))
        ensure(math.isfinite(steps), f"there are {steps} steps of {delta} from {start} to {limit}.")
        return [(math.ceil(steps),)]
    return [(-(-abs(limit - start) // abs(delta)),)]


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 3)
    ensure_type(node.inputs[0], *_TYPES)
    for tensor in node.inputs:
        ensure_same_type(tensor, node.inputs[0])
        ensure(tensor.ndim == 0, f"{tensor} must be a scalar.")
    context.set_type(node.outputs[0], node.inputs[0].type)
    defer_or_resize(context, node, node.inputs, _shapes)


def _bind(node: Node) -> Thunk:
    start, _, delta = (tensor.data for tensor in node.inputs)
    output = node.outputs[0].data

    def run() -> None:
        # LiteRT adds delta step by step, and floats are rounded at each step.
        output[:1] = start
        output[1:] = delta
        np.add.accumulate(output, 0, output.dtype, output)

    return run


def bind(context: Context, node: Node) -> Thunk:
    return defer_or_run(context, node, _shapes, _bind, node.inputs)


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=_TYPES)
