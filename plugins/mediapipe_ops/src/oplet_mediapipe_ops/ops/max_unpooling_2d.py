"""MaxUnpooling2D: writes each value to the position that MaxPoolingWithArgmax2D found, zeros elsewhere.

Where windows overlap and two values go to the same place, the later one in row-by-row order stays. The padding that the
options name makes no difference: an output axis is as long as the input's times the window's.

Numerics: mediapipe/util/tflite/operations/max_unpooling.cc
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, checkpoint, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands
from oplet_mediapipe_ops.structs import pool_params
from oplet_mediapipe_ops.windows import taps


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2, 1)
    (values, positions), output = node.inputs, node.outputs[0]
    ensure_type(values, TensorType.FLOAT32)
    ensure_type(positions, TensorType.FLOAT32, TensorType.INT32)
    ensure_type(output, TensorType.FLOAT32)
    ensure(values.ndim == 4, f"{values} must have 4 dimensions.")
    ensure(positions.shape == values.shape, f"the positions {positions} must have the shape of the values {values}.")
    params = pool_params(node)
    (down, across), (height, width) = params.strides, params.window
    ensure(
        down <= height and across <= width,
        f"the strides {down} x {across} must not exceed the window {height} x {width}: values would leave the output.",
    )
    batch, rows, columns, channels = values.shape
    context.resize_tensor(output, (batch, rows * height, columns * width, channels))
    scratch = [context.add_temporary(node, values.shape, type) for type in (TensorType.INT32, TensorType.BOOL)]
    node.prepared = params, scratch


def bind(context: Context, node: Node) -> Thunk:
    params, scratch = node.prepared
    values, positions, output = node.inputs[0].data, node.inputs[1].data, node.outputs[0].data
    whole, here = (tensor.data for tensor in scratch)
    if not values.size:
        return lambda: None
    down, across = (
        taps(small, large, stride, window, 0)
        for small, large, stride, window in zip(values.shape[1:3], output.shape[1:3], params.strides, params.window)
    )
    width, count = params.window[1], params.window[0] * params.window[1]

    def run() -> None:
        output.fill(0)
        low, high = positions.min(), positions.max()
        ensure(
            low > -1 and high < count,  # false for NaN too
            f"the positions {node.inputs[1]} go from {low} to {high}; a window of {params.window} has 0 to {count - 1}.",
        )
        np.copyto(whole, positions, casting="unsafe")
        # Backwards through the window is forwards through the values that compete for a place.
        for y in reversed(down):
            for x in reversed(across):
                checkpoint()
                np.equal(whole, y.offset * width + x.offset, here)
                np.copyto(output[:, y.large, x.large], values, where=here)

    return run


REGISTRATION = Registration(
    prepare=prepare,
    bind=bind,
    pure=True,
    types=(TensorType.FLOAT32,),
    differences="Reads positions as MediaPipe's own kernel does, row by row; XNNPACK counts column by column.",
)
