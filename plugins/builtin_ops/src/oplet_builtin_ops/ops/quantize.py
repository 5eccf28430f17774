"""QUANTIZE: real numbers to integers with a scale and zero point, or integers from one such quantization to another.

Numerics: tflite/kernels/quantize.cc, internal/reference/quantize.h, internal/reference/requantize.h
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from oplet import Context, Node, Registration, Tensor, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.fixed_point import clip, multiply_by_quantized_multiplier, quantize_multiplier, quantized_range, quotient
from oplet.kernels.operands import ensure_operands
from oplet_builtin_ops.arithmetic.lookup import lookup, lookup_table
from oplet_builtin_ops.arithmetic.quantization import channel_parameters, ensure_quantized, wraps_large_values
from oplet_builtin_ops.arithmetic.scaling import ensure_zero_point_is_zero, rescaler
from oplet_builtin_ops.layers.program import convert

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The output types by input type.
TARGETS: Final = {
    TensorType.FLOAT16: (TensorType.INT8, TensorType.UINT8),
    TensorType.FLOAT32: (TensorType.INT8, TensorType.UINT8, TensorType.INT16, TensorType.INT4, TensorType.UINT4),
    TensorType.INT16: (TensorType.INT8, TensorType.INT16, TensorType.INT32),
    TensorType.INT32: (TensorType.INT8, TensorType.INT16),
    TensorType.INT8: (TensorType.INT8, TensorType.UINT8, TensorType.INT16),
    TensorType.UINT8: (TensorType.INT8, TensorType.UINT8, TensorType.INT16),
}
#: The most values for which `copysign`, one by one, takes less time than two vectorized calls.
_FEW: Final = 128
#: A scale from which on half of it is a normal number.
_LEAST_SCALE: Final = 1e-30
#: The largest number below a half: added to a number, which is then truncated, it rounds halves, and only these, away from zero.
_HALF: Final = np.array(0.49999997, np.float32)
_FOUR_BITS: Final = {TensorType.INT4: (-8, 7), TensorType.UINT4: (0, 15)}


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 1)
    source, output = node.inputs[0], node.outputs[0]
    ensure_type(source, *TARGETS)
    ensure_type(output, *TARGETS[source.type])
    context.resize_tensor(output, source.shape)
    if source.type == TensorType.FLOAT32:
        _prepare_reals(context, node, source, output)
        return
    if source.type == TensorType.FLOAT16:
        ensure_quantized(output)
        context.add_temporary(node, output.shape, TensorType.FLOAT32)
        return
    ensure_quantized(output)
    # Integers without a scale, or with a scale of 0, all mean 0: quantizers write the first around ops that they do not know, and
    # the second for constants of zeros.
    if source.scale != 0:
        ensure_quantized(source)
    ratio = quotient(source.scale, output.scale)
    if source.type == output.type == TensorType.INT16:
        ensure_zero_point_is_zero(source, output)
    multiplier, shift = node.prepared = quantize_multiplier(ratio)
    if source.type == TensorType.INT32:
        for type in (TensorType.INT32, TensorType.INT64, TensorType.INT64):
            context.add_temporary(node, output.shape, type)
        return

    def rule(values: NDArray[np.int64]) -> NDArray[np.int64]:
        steps = multiply_by_quantized_multiplier((values - source.zero_point).astype(np.int32), multiplier, shift)
        return steps.astype(np.int64) + output.zero_point

    node.prepared = node.cached(("table", source.type, output.type), (), lambda: lookup_table(source.type, output.type, rule))


def _prepare_reals(context: Context, node: Node, source: Tensor, output: Tensor) -> None:
    scales, zero_points = channel_parameters(output, source.shape)
    zero_points = zero_points.astype(np.int32).astype(np.int64)  # LiteRT keeps 32 bits of them
    per_channel = scales.size > 1
    ensure(not per_channel or output.type not in _FOUR_BITS, f"{output} has {scales.size} scales; QUANTIZE gives it only one.")
    node.prepared = scales, zero_points
    context.add_temporary(node, output.shape, TensorType.FLOAT32)
    widest = 2 * max(int(np.absolute(bound).max(initial=0)) for bound in _bounds(output, zero_points)) + 1
    type = TensorType.INT16 if widest < 1 << 15 else TensorType.INT32 if widest < 1 << 31 else TensorType.INT64
    for _ in range(2):
        context.add_temporary(node, output.shape, type)


def _bounds(output: Tensor, zero_points: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the output type's bounds minus the zero points: the range of rounded steps before clamping."""
    low, high = _FOUR_BITS[output.type] if output.type in _FOUR_BITS else quantized_range(output.type)
    return low - zero_points, high - zero_points


def bind(context: Context, node: Node) -> Thunk:
    source, output = node.inputs[0], node.outputs[0]
    temporaries = [temporary.data for temporary in node.temporaries]
    if source.type == TensorType.FLOAT32:
        scales, zero_points = node.prepared
        clamped = _bind_reals(source.data, output.data, scales, zero_points, _bounds(output, zero_points), *temporaries)
        return _with_lost(clamped, node, scales, zero_points) if wraps_large_values(output.type, scales) else clamped
    if source.type == TensorType.FLOAT16:
        return partial(_quantize_halves, source.data, output.data, output.scale, output.zero_point, *temporaries)
    if source.type != TensorType.INT32:
        return lookup(node.prepared, source.data, output.data)
    shifted, wide, scratch = (array.reshape(-1) for array in temporaries)
    values, zero_point = source.data.reshape(-1), np.array([source.zero_point], np.int32)
    bounds = quantized_range(output.type)
    multiplier, shift = node.prepared
    finish = rescaler(shifted, wide, scratch, multiplier, shift, output.zero_point, bounds, output.data.reshape(-1))

    def run() -> None:
        np.subtract(values, zero_point, shifted)
        finish()

    return run


def _with_lost(run: Thunk, node: Node, scales: NDArray[np.float32], zero_points: NDArray[np.int64]) -> Thunk:
    """Wrap `run`, which clamps: afterwards set outputs whose float value was beyond int32 to the lowest value."""
    values, output, maximum = node.inputs[0].data, node.outputs[0].data, np.maximum.reduce
    flat, info = values.reshape(-1), np.iinfo(output.dtype)
    least = (zero_points.astype(np.int32) + np.array([-(2**31)], np.int32)).astype(np.int64)  # which may wrap around
    lost = np.broadcast_to(np.clip(least, info.min, info.max).reshape(zero_points.shape), output.shape)
    limit = np.float64(scales.min()) * (2.0**31 - 256)

    def run_and_correct() -> None:
        run()
        # Values too far below zero are the lowest value already, as int16 has zero points of 0.
        if limit > 1e-30 and maximum(flat, initial=0) < limit:  # this is false for NaN too
            return
        with np.errstate(all="ignore"):
            beyond = ~(np.abs(values / scales) < 2.0**31 - 0.5)
        np.copyto(output, lost, "unsafe", where=beyond)

    return run_and_correct


def _bind_reals(
    values: NDArray[np.float32],
    output: NDArray[Any],
    scales: NDArray[np.float32],
    zero_points: NDArray[np.int64],
    bounds: tuple[NDArray[np.int64], NDArray[np.int64]],
    steps: NDArray[np.float32],
    halves: NDArray[Any],
    signs: NDArray[Any],
) -> Thunk:
    # With k half steps, fraction dropped, rounding to whole steps, halves away from zero, gives k >> 1 for negative k and (k + 1)
    # >> 1 otherwise; in integers that is exact.
    half_scales: NDArray[np.float32] = np.maximum(scales / np.float32(2), np.finfo(np.float32).smallest_subnormal)
    lowest, highest = (np.asarray(2 * bound, np.float32) for bound in bounds)
    one, offset = np.array(1, halves.dtype), np.asarray(2 * zero_points + 1, halves.dtype)
    sign_bit = np.array(8 * halves.itemsize - 1, halves.dtype)
    if not values.size:
        return lambda: None
    if values.size <= _FEW and halves.itemsize < 8 and scales.min() > _LEAST_SCALE:
        # Each step in float32 is half of the number of half steps, without rounding, and the bounds are small.
        least, most = (np.asarray(bound, np.float32) for bound in bounds)
        return _bind_few(values, output, scales, zero_points.astype(halves.dtype), least, most, steps, halves)
    flat, maximum = values.reshape(-1), np.maximum.reduce

    def run() -> None:
        np.divide(values, half_scales, steps)
        # NaN becomes the highest value, as in LiteRT's default mode; the maximum is NaN if there is one.
        if math.isnan(maximum(flat)):
            np.fmin(steps, highest, out=steps)
        # The bounds are integers, so that values may be clamped before they are rounded.
        clip(steps, lowest, highest, steps)
        convert(halves, steps)
        np.right_shift(halves, sign_bit, signs)
        np.add(halves, signs, halves)
        np.add(halves, offset, halves)
        np.right_shift(halves, one, halves)
        convert(output, halves)

    return run


def _bind_few(
    values: NDArray[np.float32],
    output: NDArray[Any],
    scales: NDArray[np.float32],
    zero_points: NDArray[Any],
    lowest: NDArray[np.float32],
    highest: NDArray[np.float32],
    steps: NDArray[np.float32],
    whole: NDArray[Any],
) -> Thunk:
    """Return a function that quantizes a few values, with fewer numpy calls, one of which would be slow for many."""
    halves = np.empty(values.shape, np.float32)

    def run() -> None:
        np.divide(values, scales, steps)
        np.fmin(steps, highest, out=steps)
        np.maximum(steps, lowest, out=steps)
        np.copysign(_HALF, steps, halves)
        np.add(steps, halves, steps)
        np.copyto(whole, steps, "unsafe")
        np.add(whole, zero_points, whole)
        np.copyto(output, whole, "unsafe")

    return run


def _quantize_halves(
    values: NDArray[np.float16], output: NDArray[Any], scale: float, zero_point: int, steps: NDArray[np.float32]
) -> None:
    """Quantize float16 as XNNPACK (the only kernel for it): multiply by the reciprocal scale in float16, round ties to even."""
    with np.errstate(all="ignore"):
        reciprocal = np.float32(1) / np.float32(scale)
        short = np.float16(reciprocal)
        np.copyto(steps, values)
        np.multiply(steps, np.float32(short) if np.isfinite(short) else reciprocal, steps)
        np.rint(steps, steps)
        low, high = np.iinfo(output.dtype).min, np.iinfo(output.dtype).max
        np.fmin(steps, np.float32(high - zero_point), out=steps)
        np.maximum(steps, np.float32(low - zero_point), out=steps)
        np.add(steps, np.float32(zero_point), steps)
        np.copyto(output, steps, "unsafe")


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=tuple(TARGETS))
