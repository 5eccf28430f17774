"""SUM: the sum over the axes that the second input names; quantized sums are rescaled to the output's scale.

Numerics: tflite/kernels/reduce.cc. uint8 is scaled in fixed point as by QuantizedMeanOrSum of internal/reference/reduce.h; int8 and
int16, which that function would read as uint8, in float32 as by the function of the same name in internal/optimized/reduce.h.
"""

from __future__ import annotations

from math import prod

import numpy as np

from oplet import Context, Node, Registration, TensorType, charge
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.fixed_point import (
    clip,
    ensure_scale,
    int32_of,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    quotient,
)
from oplet_builtin_ops.arithmetic.single_precision import takes_halves
from oplet_builtin_ops.layers.program import convert
from oplet_builtin_ops.shaping.reduction import (
    NUMBERS_AND_BOOL,
    QUANTIZED,
    bind_reduction,
    kept_shape,
    prepare_reduction,
    reduced_axes,
    summing,
)

#: Bytes of scratch per sum.
_SUM_BYTES = 36


def prepare(context: Context, node: Node) -> None:
    prepare_reduction(context, node, *NUMBERS_AND_BOOL)
    if node.inputs[0].type in QUANTIZED:
        ensure_scale(node.inputs[0])
        ensure_scale(node.outputs[0])


def _bind_quantized(node: Node) -> Thunk:
    source, output, axes = node.inputs[0], node.outputs[0], reduced_axes(node)
    values, target = source.data, output.data.reshape(kept_shape(node))
    count = prod(values.shape[axis] for axis in axes)
    limits, zero_point = np.iinfo(target.dtype), output.zero_point
    with np.errstate(all="ignore"):
        scale = np.float32(source.scale) / np.float32(output.scale)
        bias = np.float32(-source.zero_point) * scale * np.float32(count)
    multiplier, shift = quantize_multiplier(quotient(source.scale, output.scale))
    offset = np.int32(source.zero_point * count)

    def rescale(sums: Array) -> Array:
        if source.type == TensorType.UINT8:
            return multiply_by_quantized_multiplier(sums - offset, multiplier, shift)
        with np.errstate(all="ignore"):
            scaled = sums.astype(np.float32) * scale
            scaled += bias
            # To nearest, halves away from zero.
            return int32_of(np.copysign(np.floor(np.abs(scaled).astype(np.float64) + 0.5), scaled))

    def run() -> None:
        charge(_SUM_BYTES * target.size)
        sums = np.add.reduce(values, axes, dtype=np.int32, keepdims=True)
        convert(target, clip(rescale(sums) + np.int32(zero_point), limits.min, limits.max))

    return run


def _bind(node: Node) -> Thunk:
    source, output = node.inputs[0], node.outputs[0]
    if source.size and source.type in QUANTIZED:
        return _bind_quantized(node)
    return summing(source.data, reduced_axes(node), output.data.reshape(kept_shape(node)))


def bind(context: Context, node: Node) -> Thunk:
    return bind_reduction(context, node, _bind)


REGISTRATION = takes_halves(
    Registration(
        prepare=prepare,
        bind=bind,
        pure=True,
        types=NUMBERS_AND_BOOL,
        differences="equals the optimized kernels for int8 and int16; the reference kernels are wrong",
    )
)
