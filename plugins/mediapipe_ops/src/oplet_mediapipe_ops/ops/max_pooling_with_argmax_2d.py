"""MaxPoolingWithArgmax2D: each window's maximum, and its row-major position in the window.

The position is a number in a float tensor, with 0.1 added so that truncation gives the right integer; in an int32 tensor
it is the bare number. Of equal values the first counts; NaN never does.

Numerics: mediapipe/util/tflite/operations/max_pool_argmax.cc
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, checkpoint, ensure, ensure_type
from oplet.kernels.activations import CLAMPS, float_activation_range
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands
from oplet.kernels.windows import padding_before, windows_in
from oplet.schema.enums import ActivationFunctionType
from oplet_mediapipe_ops.structs import pool_params
from oplet_mediapipe_ops.windows import taps

_LOWEST = np.finfo(np.float32).min


def prepare(context: Context, node: Node) -> None:
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


def bind(context: Context, node: Node) -> Thunk:
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


REGISTRATION = Registration(
    prepare=prepare,
    bind=bind,
    pure=True,
    types=(TensorType.FLOAT32,),
    differences="Positions are counted row by row, as in MediaPipe's own kernel; XNNPACK counts column by column and "
    "stores the integer's bits in the float tensor.",
)
