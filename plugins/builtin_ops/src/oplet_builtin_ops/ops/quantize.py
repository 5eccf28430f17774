"""QUANTIZE: real numbers to integers with a scale and zero point, or integers from one such form to another.

Numerics: tflite/kernels/quantize.cc, internal/reference/quantize.h, internal/reference/requantize.h
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from oplet import Context, Node, Registration, Tensor, TensorType, ensure, ensure_type
from oplet_builtin_ops.arithmetic.fixed_point import (
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    quantized_range,
)
from oplet_builtin_ops.arithmetic.lookup import lookup, lookup_table
from oplet_builtin_ops.arithmetic.quantization import channel_parameters, ensure_quantized
from oplet_builtin_ops.arithmetic.scaling import ensure_zero_point_is_zero, rescaler
from oplet_builtin_ops.shaping.shapes import Thunk, ensure_operands

#: What each type may become.
TARGETS: Final = {
    TensorType.FLOAT32: (TensorType.INT8, TensorType.UINT8, TensorType.INT16, TensorType.INT4, TensorType.UINT4),
    TensorType.INT16: (TensorType.INT8, TensorType.INT16, TensorType.INT32),
    TensorType.INT32: (TensorType.INT8, TensorType.INT16),
    TensorType.INT8: (TensorType.INT8, TensorType.UINT8, TensorType.INT16),
    TensorType.UINT8: (TensorType.INT8, TensorType.UINT8, TensorType.INT16),
}
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
    ensure_quantized(output)
    # Integers without a scale, or with a scale of 0, stand for nothing but 0: quantizers write the one around ops that they
    # do not know, and the other for constants of zeros.
    if source.scale != 0:
        ensure_quantized(source)
    ratio = source.scale / output.scale
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

    node.prepared = node.cached(f"table of {source.type.name}", lambda: lookup_table(source.type, output.type, rule))


def _prepare_reals(context: Context, node: Node, source: Tensor, output: Tensor) -> None:
    scales, zero_points = channel_parameters(output, source.shape)
    per_channel = scales.size > 1
    ensure(not per_channel or output.type not in _FOUR_BITS, f"{output} has {scales.size} scales; QUANTIZE gives it only one.")
    node.prepared = scales, zero_points
    context.add_temporary(node, output.shape, TensorType.FLOAT32)
    context.add_temporary(node, output.shape, TensorType.INT32)


def bind(context: Context, node: Node) -> Thunk:
    source, output = node.inputs[0], node.outputs[0]
    temporaries = [temporary.data for temporary in node.temporaries]
    if source.type == TensorType.FLOAT32:
        scales, zero_points = node.prepared
        low, high = _FOUR_BITS[output.type] if output.type in _FOUR_BITS else quantized_range(output.type)
        return _bind_reals(source.data, output.data, scales, zero_points, low, high, *temporaries)
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


def _bind_reals(
    values: NDArray[np.float32],
    output: NDArray[Any],
    scales: NDArray[np.float32],
    zero_points: NDArray[np.int64],
    low: int,
    high: int,
    steps: NDArray[np.float32],
    halves: NDArray[np.int32],
) -> Thunk:
    lowest, highest = (np.asarray(bound - zero_points, np.float32) for bound in (low, high))
    shifts, offset = bool(zero_points.any()), np.asarray(zero_points, np.int32)
    # The bounds are integers, so that values may be cut to them before they are rounded.
    # Adding the number just below a half and cutting off what follows the point rounds halves away from zero; adding
    # a half itself would carry 0.49999997 up to 1.
    half = np.array(np.nextafter(np.float32(0.5), np.float32(0)), np.float32).view(np.int32)
    sign_bit = np.array(-(1 << 31), np.int32)
    bits, signed_halves = steps.view(np.int32), halves.view(np.float32)

    def run() -> None:
        np.divide(values, scales, steps)
        # NaN becomes the highest value, as it does in LiteRT's default mode.
        np.fmin(steps, highest, out=steps)
        np.maximum(steps, lowest, out=steps)
        # As copysign, which is slow.
        np.bitwise_and(bits, sign_bit, halves)
        np.bitwise_or(halves, half, halves)
        np.add(steps, signed_halves, steps)
        if shifts:
            np.copyto(halves, steps, "unsafe")
            np.add(halves, offset, halves)
            output[...] = halves
        else:
            np.copyto(output, steps, "unsafe")

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=tuple(TARGETS))
