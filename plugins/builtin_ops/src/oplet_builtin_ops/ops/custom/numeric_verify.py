"""NumericVerify: the error of quantization: the dequantized first input minus the second, a float reference.

With `log_if_failed` and a `tolerance` of at least 0.1, a difference above tolerance * scale is an error.

Numerics: tflite/kernels/numeric_verify.cc
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands
from oplet_builtin_ops.arithmetic.quantization import channel_parameters
from oplet_builtin_ops.custom_options import CustomOptions

TYPES = (TensorType.UINT8, TensorType.INT8, TensorType.INT16, TensorType.FLOAT16)


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2)
    (source, reference), output = node.inputs, node.outputs[0]
    ensure_type(source, *TYPES)
    ensure_type(reference, TensorType.FLOAT32)
    ensure(source.size == reference.size, f"{source} and the reference {reference} must have as many values.")
    options = CustomOptions(node)
    tolerance = float(np.float32(options.real("tolerance")))
    node.prepared = tolerance if options.boolean("log_if_failed") and tolerance >= 0.1 else None
    context.set_type(output, TensorType.FLOAT32)
    context.resize_tensor(output, source.shape)


def bind(context: Context, node: Node) -> Thunk:
    source, reference = node.inputs
    output = node.outputs[0].data
    values, wanted = source.data, reference.data.reshape(output.shape)
    tolerance: float | None = node.prepared
    if source.type == TensorType.FLOAT16:
        scales, zero_points = np.ones((), np.float32), np.zeros((), np.int64)
    else:
        scales, zero_points = channel_parameters(source, source.shape)

    def run() -> None:
        output[...] = (values - zero_points.astype(np.float64)) * scales.astype(np.float64)
        np.subtract(output, wanted, output)
        if tolerance is not None and output.size:
            limit, largest = tolerance * source.scale, float(np.abs(output).max())
            ensure(largest <= limit, f"{source} is {largest:g} away from its reference, more than the tolerance of {limit:g}.")

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, types=TYPES)
