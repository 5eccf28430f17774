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
from oplet_builtin_ops.arithmetic.scaling import rescaler
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

    if source.type == TensorType.UINT8 and shift <= 0:
        return _fixed(values, axes, target, offset, (multiplier, shift, zero_point))
    largest = float(np.iinfo(values.dtype).max + 1) * count * float(scale) + abs(float(bias))
    if source.type != TensorType.UINT8 and largest < 2.0**30:
        return _real(values, axes, target, (scale, bias), zero_point)

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


def _fixed(values: Array, axes: tuple[int, ...], target: Array, offset: np.int32, scaling: tuple[int, int, int]) -> Thunk:
    """Return the function that sums and requantizes in fixed point."""
    sums, (wide, spare) = np.empty(target.shape, np.int32), np.empty((2, target.size), np.int64)
    limits, (multiplier, shift, zero_point) = np.iinfo(target.dtype), scaling
    flat, shifted = sums.reshape(-1), np.array([offset], np.int32)
    finish = rescaler(flat, wide, spare, multiplier, shift, zero_point, (limits.min, limits.max), target.reshape(-1))
    charge(_SUM_BYTES * target.size)
    add_up = np.add.reduce

    def run() -> None:
        add_up(values, axes, np.int32, sums, keepdims=True)
        np.subtract(flat, shifted, flat)
        finish()

    return run


def _real(values: Array, axes: tuple[int, ...], target: Array, scaling: tuple[np.float32, np.float32], zero_point: int) -> Thunk:
    """Return the function that sums and requantizes in float32, for sums that stay far from the bounds of int32."""
    sums, scaled, wide = (np.empty(target.shape, type) for type in (np.int32, np.float32, np.float64))
    scale, bias = (np.array(value, np.float32) for value in scaling)
    half, middle = np.array(0.5), np.array(float(zero_point))
    low, high = (np.array(float(bound)) for bound in (np.iinfo(target.dtype).min, np.iinfo(target.dtype).max))
    charge(_SUM_BYTES * target.size)
    add_up = np.add.reduce

    def run() -> None:
        add_up(values, axes, np.int32, sums, keepdims=True)
        np.copyto(scaled, sums, "same_kind")
        np.multiply(scaled, scale, scaled)
        np.add(scaled, bias, scaled)
        # To nearest, halves away from zero.
        np.absolute(scaled, wide)
        np.add(wide, half, wide)
        np.floor(wide, wide)
        np.copysign(wide, scaled, wide)
        np.add(wide, middle, wide)
        clip(wide, low, high, wide)
        np.copyto(target, wide, "unsafe")

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
