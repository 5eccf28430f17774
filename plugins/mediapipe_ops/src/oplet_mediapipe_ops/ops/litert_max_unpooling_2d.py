"""LiteRtMaxUnpooling2D: writes each value to its place in the output, zeros elsewhere.

The places of an image are counted from 0 over its rows, columns and channels, as TensorFlow's MaxPoolWithArgmax gives them. Of two values for
one place the later one stays.

Numerics: tensorflow/lite/kernels/perception/max_unpooling_2d.cc
"""

from __future__ import annotations

import math

import numpy as np

from oplet import Context, Node, Registration, TensorType, checkpoint, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands
from oplet.schema.enums import Padding
from oplet_mediapipe_ops.structs import pool_params


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2, 1)
    (values, places), output = node.inputs, node.outputs[0]
    ensure_type(values, TensorType.FLOAT32)
    ensure_type(places, TensorType.INT32)
    ensure_type(output, TensorType.FLOAT32)
    ensure(values.ndim == 4, lambda: f"{values} must have 4 dimensions.")
    ensure(places.shape == values.shape, lambda: f"the places {places} must have the shape of the values {values}.")
    params = pool_params(node)
    height, width = (
        size * stride if params.padding == Padding.SAME else max(0, (size - 1) * stride + window)
        for size, stride, window in zip(values.shape[1:3], params.strides, params.window)
    )
    context.resize_tensor(output, (values.shape[0], height, width, values.shape[3]))


def bind(context: Context, node: Node) -> Thunk:
    values, places, output = (
        tensor.data.reshape(tensor.shape[0], math.prod(tensor.shape[1:])) for tensor in (*node.inputs, *node.outputs)
    )

    def run() -> None:
        output.fill(0)
        if not values.size:
            return
        low, high, count = int(places.min()), int(places.max()), output.shape[1]
        ensure(
            low >= 0 and high < count,
            lambda: f"the places {node.inputs[1]} go from {low} to {high}; an image has 0 to {count - 1}.",
        )
        for image, given, at in zip(output, values, places):
            checkpoint()
            np.put(image, at, given)

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(TensorType.FLOAT32,))
