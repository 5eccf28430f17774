"""Max pooling that tells places, and unpooling to them.

MaxPoolingWithArgmax2D: each window's maximum, and its row-major position in the window.

The position is a number in a float tensor, with 0.1 added so that truncation gives the right integer; in an int32 tensor
it is the bare number. Of equal values the first counts; NaN never does.

Numerics: mediapipe/util/tflite/operations/max_pool_argmax.cc

MaxUnpooling2D: writes each value to the position that MaxPoolingWithArgmax2D found, zeros elsewhere.

Where windows overlap and two values go to the same place, the later one in row-by-row order stays. The padding that the
options name makes no difference: an output axis is as long as the input's times the window's.

Numerics: mediapipe/util/tflite/operations/max_unpooling.cc

LiteRtMaxUnpooling2D: writes each value to its place in the output, zeros elsewhere.

The places of an image are counted from 0 over its rows, columns and channels, as TensorFlow's MaxPoolWithArgmax gives them. Of two values for
one place the later one stays.

Numerics: tensorflow/lite/kernels/perception/max_unpooling_2d.cc
"""

from __future__ import annotations

import math

import numpy as np

from oplet import Context, Node, Registration, TensorType, checkpoint, ensure, ensure_type
from oplet.kernels.activations import CLAMPS, float_activation_range
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands
from oplet.kernels.windows import padding_before, windows_in
from oplet.schema.enums import ActivationFunctionType, Padding
from oplet_mediapipe_ops.structs import pool_params
from oplet_mediapipe_ops.windows import taps

_LOWEST = np.finfo(np.float32).min


def prepare_pool(context: Context, node: Node) -> None:
    ensure_operands(node, 1, 2)
    source, (values, positions) = node.inputs[0], node.outputs
    ensure_type(source, TensorType.FLOAT32)
    ensure_type(values, TensorType.FLOAT32)
    ensure_type(positions, TensorType.FLOAT32, TensorType.INT32)
    ensure(source.ndim == 4, f"{source} must have 4 dimensions.")
    params = pool_params(node)
    ensure(params.activation in CLAMPS, f"{node.op_name} cannot be followed by the fused activation {params.activation.name}.")
    batch, *sizes, channels = source.shape
    small = [
        windows_in(size, window, stride, params.padding) for size, stride, window in zip(sizes, params.strides, params.window)
    ]
    ensure(min(small) >= 0, f"a window of {params.window} does not fit into {source}.")
    shape = (batch, *small, channels)
    context.resize_tensor(values, shape)
    context.resize_tensor(positions, shape)
    node.prepared = params, context.add_temporary(node, shape, TensorType.BOOL)


def bind_pool(context: Context, node: Node) -> Thunk:
    params, temporary = node.prepared
    source, values, positions, larger = node.inputs[0].data, node.outputs[0].data, node.outputs[1].data, temporary.data
    if not values.size:
        return lambda: None
    down, across = (
        taps(small, large, stride, window, padding_before(small, large, window, stride))
        for small, large, stride, window in zip(values.shape[1:3], source.shape[1:3], params.strides, params.window)
    )
    width, bounds = params.window[1], float_activation_range(params.activation)
    number = positions.dtype.type
    extra = number(0.1)  # none for an integer

    def run() -> None:
        values.fill(_LOWEST)
        positions.fill(extra)
        for y in down:
            for x in across:
                checkpoint()
                seen = source[:, y.large, x.large]
                best, place, better = (array[:, y.small, x.small] for array in (values, positions, larger))
                np.greater(seen, best, better)
                np.copyto(best, seen, where=better)
                np.copyto(place, number(y.offset * width + x.offset) + extra, where=better)
        if params.activation != ActivationFunctionType.NONE:
            np.clip(values, *bounds, out=values)

    return run


MAX_POOLING = Registration(
    prepare=prepare_pool,
    bind=bind_pool,
    pure=True,
    types=(TensorType.FLOAT32,),
    differences="Positions are counted row by row, as in MediaPipe's own kernel; XNNPACK counts column by column and "
    "stores the integer's bits in the float tensor.",
)


def prepare_unpool(context: Context, node: Node) -> None:
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


def bind_unpool(context: Context, node: Node) -> Thunk:
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


MAX_UNPOOLING = Registration(
    prepare=prepare_unpool,
    bind=bind_unpool,
    pure=True,
    types=(TensorType.FLOAT32,),
    differences="Reads positions as MediaPipe's own kernel does, row by row; XNNPACK counts column by column.",
)


def prepare_litert_unpool(context: Context, node: Node) -> None:
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


def bind_litert_unpool(context: Context, node: Node) -> Thunk:
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


LITERT_MAX_UNPOOLING = Registration(
    prepare=prepare_litert_unpool, bind=bind_litert_unpool, pure=True, types=(TensorType.FLOAT32,)
)
