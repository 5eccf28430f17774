"""SQUARED_DIFFERENCE: (a - b) squared. Numerics: tflite/kernels/squared_difference.cc

LiteRT has no kernel for int16, which layer normalizations in int16x8 have; its sister for microcontrollers has one, whose bits these are:
tensorflow/lite/micro/kernels/squared_difference.cc of tflite-micro.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oplet import Context, Node, Registration, Tensor, TensorType, ensure
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.fixed_point import multiply_by_quantized_multiplier, quantize_multiplier, quantized_range, quotient
from oplet.kernels.shapes import offer_in_place
from oplet_builtin_ops.arithmetic.quantization import ensure_quantized
from oplet_builtin_ops.arithmetic.scaling import ensure_zero_point_is_zero, rescaler
from oplet_builtin_ops.arithmetic.single_precision import takes_halves
from oplet_builtin_ops.elementwise.binary_arithmetic import add_pair_scratch, bind_pairs
from oplet_builtin_ops.elementwise.pairwise import bind_steps, prepare_pairwise

#: Values are shifted to the left by so many bits before they are scaled to a common step.
_LEFT_SHIFTS = {TensorType.INT8: 7, TensorType.INT16: 0}
_INT32 = TensorType.INT32
_TYPES = (TensorType.FLOAT32, TensorType.INT32, TensorType.INT8, TensorType.INT16)
#: A square that is scaled up to more than this many bits is beyond int16.
_BITS = 17


def prepare(context: Context, node: Node) -> None:
    a, b, output = prepare_pairwise(context, node, *_TYPES)
    offer_in_place(node)
    if a.type in _LEFT_SHIFTS:
        ensure_quantized(a, b, output)
        if a.type == TensorType.INT16:
            ensure_zero_point_is_zero(a, b, output)
        for tensor in (a, b):
            if not tensor.scale > 0:
                ensure(False, f"{tensor} has scale 0; the inputs of this op have scales above 0.")
        first, second, ratio = _ratios(a, b, output)
        ensure(
            ratio > 0 and (ratio < 1 or a.type == TensorType.INT16) and 0 < first < 1 and 0 < second < 1,
            lambda: f"{output} has scale {output.scale:g}, too fine for the square of a difference of {a} and {b}.",
        )
        if a.type == TensorType.INT8:
            add_pair_scratch(context, node)
            return
        for shape, type in (
            (a.shape, _INT32),
            (b.shape, _INT32),
            (output.shape, _INT32),
            *2 * [(output.shape, TensorType.INT64)],
        ):
            context.add_temporary(node, shape, type)


def _ratios(a: Tensor, b: Tensor, output: Tensor) -> tuple[float, float, float]:
    with np.errstate(over="ignore"):
        # LiteRT computes both in single precision.
        step = float(2 * np.float32(max(a.scale, b.scale)))
        steps = float(np.float32(1 << 2 * _LEFT_SHIFTS[a.type]) * np.float32(output.scale))
    return a.scale / step, b.scale / step, quotient(step * step, steps)


def bind(context: Context, node: Node) -> Thunk:
    a, b = node.inputs
    output = node.outputs[0]
    if a.type not in _LEFT_SHIFTS:
        return bind_steps(node, _plain)
    first, second, result = (quantize_multiplier(ratio) for ratio in _ratios(a, b, output))
    if not output.size:
        return lambda: None
    if a.type == TensorType.INT16:
        return _bind_int16(node, first, second, result)

    def rule(x: NDArray[np.int64], y: NDArray[np.int64]) -> NDArray[np.int64]:
        x, y = (x - a.zero_point) << _LEFT_SHIFTS[TensorType.INT8], (y - b.zero_point) << _LEFT_SHIFTS[TensorType.INT8]
        difference = multiply_by_quantized_multiplier(x, *first) - multiply_by_quantized_multiplier(y, *second)
        square = multiply_by_quantized_multiplier(difference * difference, *result).astype(np.int64)
        return np.clip(square + output.zero_point, -128, 127)

    return bind_pairs(node, rule)


def _bind_int16(node: Node, first: tuple[int, int], second: tuple[int, int], result: tuple[int, int]) -> Thunk:
    a, b, output = node.inputs[0].data, node.inputs[1].data, node.outputs[0].data
    x, y, square, wide, scratch = (temporary.data for temporary in node.temporaries)
    rows = wide.reshape(-1), scratch.reshape(-1)
    everything = quantized_range(TensorType.INT32)

    def scaled(values: NDArray[np.int32], ratio: tuple[int, int]) -> Thunk:
        flat = values.reshape(-1)
        return rescaler(flat, rows[0][: flat.size], rows[1][: flat.size], *ratio, 0, everything, flat)

    # What would leave 32 bits when it is shifted to the left is beyond the output's range all the same.
    multiplier, shift = result[0], min(result[1], _BITS)
    most = np.array(1 << _BITS - shift if shift > 0 else everything[1], np.int32)
    scale_x, scale_y = scaled(x, first), scaled(y, second)
    finish = rescaler(square.reshape(-1), *rows, multiplier, shift, 0, quantized_range(TensorType.INT16), output.reshape(-1))

    def run() -> None:
        x[...], y[...] = a, b
        scale_x()
        scale_y()
        np.subtract(x, y, square)
        np.multiply(square, square, square)
        np.minimum(square, most, out=square)
        finish()

    return run


def _plain(a: Array, b: Array, output: Array) -> None:
    np.subtract(a, b, output)
    np.multiply(output, output, output)


REGISTRATION = takes_halves(
    Registration(
        prepare=prepare,
        bind=bind,
        pure=True,
        types=_TYPES,
        differences="LiteRT refuses int16, which has the bits of tflite-micro here",
    )
)
