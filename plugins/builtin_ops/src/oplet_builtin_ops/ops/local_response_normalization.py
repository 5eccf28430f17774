"""LOCAL_RESPONSE_NORMALIZATION: each value divided by a power of the sum of squares of its neighbours along the last dimension.

Numerics: tflite/kernels/internal/optimized/optimized_ops.h (LocalResponseNormalization); the reference kernel computes
something else.
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure
from oplet.kernels.arrays import Array, Thunk
from oplet.schema.options import LocalResponseNormalizationOptions
from oplet_builtin_ops.elementwise.elementwise import prepare_elementwise


def prepare(context: Context, node: Node) -> None:
    source, _ = prepare_elementwise(context, node, TensorType.FLOAT32)
    ensure(source.ndim == 4, f"{source} must have 4 dimensions.")
    radius = node.options(LocalResponseNormalizationOptions).radius
    ensure(radius >= 0, f"the radius is {radius}; it must not be negative.")
    context.add_temporary(node, (*source.shape[:-1], source.shape[-1] + 1), TensorType.FLOAT64)
    context.add_temporary(node, source.shape, TensorType.FLOAT64)
    context.add_temporary(node, source.shape, TensorType.FLOAT64)


def bind(context: Context, node: Node) -> Thunk:
    options = node.options(LocalResponseNormalizationOptions)
    source, output = node.inputs[0].data, node.outputs[0].data
    sums, scales, lower = (temporary.data for temporary in node.temporaries)
    depth = source.shape[-1]
    channels = np.arange(depth)
    first = np.maximum(channels - options.radius, 0)
    behind = np.minimum(channels + min(options.radius, depth) + 1, depth)
    alpha, bias, beta = (np.array(value, np.float64) for value in (options.alpha, options.bias, -options.beta))

    def run() -> None:
        # Sums up to each channel in double precision, so that the difference of two of them is accurate.
        np.square(source, scales)
        sums[..., 0] = 0
        np.add.accumulate(scales, -1, out=sums[..., 1:])
        sums.take(behind, -1, scales, "clip")
        sums.take(first, -1, lower, "clip")
        np.subtract(scales, lower, scales)
        np.multiply(scales, alpha, scales)
        np.add(scales, bias, scales)
        _power(scales, beta)
        np.multiply(source, scales, output, casting="same_kind")

    return run


def _power(scales: Array, exponent: Array) -> None:
    if exponent == -1:
        np.reciprocal(scales, scales)
    elif exponent == -0.5:
        np.sqrt(scales, scales)
        np.reciprocal(scales, scales)
    else:
        np.power(scales, exponent, scales)


REGISTRATION = Registration(
    prepare=prepare,
    bind=bind,
    pure=True,
    types=(TensorType.FLOAT32,),
    differences="equals the optimized kernel; the reference kernel is wrong",
)
