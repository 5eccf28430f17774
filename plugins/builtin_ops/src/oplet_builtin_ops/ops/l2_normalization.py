"""L2_NORMALIZATION along the last dimension: x divided by the square root of the sum of squares.

Numerics: tflite/kernels/l2norm.cc, internal/reference/l2normalization.h, integer_ops/l2normalization.h
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oplet import Context, Node, Registration, TensorType, charge, checkpoint, ensure
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.fixed_point import clip, multiply_by_quantized_multiplier
from oplet.schema.enums import ActivationFunctionType
from oplet.schema.options import L2NormOptions
from oplet_builtin_ops.arithmetic.fixed_point_functions import inverse_square_root
from oplet_builtin_ops.arithmetic.single_precision import takes_halves
from oplet_builtin_ops.elementwise.elementwise import prepare_elementwise
from oplet_builtin_ops.layers.program import convert

TYPES = (TensorType.FLOAT32, TensorType.INT8, TensorType.UINT8)
#: The smallest norm to divide by.
_EPSILON = 1e-6
#: The output's scale is 2**-7.
_OUTPUT_BITS = 7
#: The values per block, and their bytes of scratch.
_BLOCK, _SCRATCH = 1 << 16, 32
#: The most rows that are rescaled one by one.
_FEW = 3
#: The bounds of int8 and uint8.
_BOUNDS = [np.array(bound, np.int32) for bound in (-128, 127, 0, 255)]


def prepare(context: Context, node: Node) -> None:
    source, output = prepare_elementwise(context, node, *TYPES)
    activation = node.options(L2NormOptions).fused_activation_function
    ensure(activation == ActivationFunctionType.NONE, f"the options ask for {activation.name}; L2_NORMALIZATION fuses none.")
    ensure(source.ndim >= 1, f"{source} must have a dimension at least.")
    if source.type == TensorType.FLOAT32:
        context.add_temporary(node, (*source.shape[:-1], 1))
        return
    zero_point = 0 if source.type == TensorType.INT8 else 128
    ensure(
        output.scale == 1 / 128 and output.zero_point == zero_point,
        f"{output} has scale {output.scale:g} and zero point {output.zero_point}; L2_NORMALIZATION gives 1/128 and {zero_point}.",
    )


def bind(context: Context, node: Node) -> Thunk:
    source, output = node.inputs[0].data, node.outputs[0].data
    if node.inputs[0].type != TensorType.FLOAT32:
        zero_point = node.inputs[0].zero_point
        return _bind_quantized(source, zero_point, output)
    norms, epsilon = node.temporaries[0].data, np.array(_EPSILON, np.float32)

    def run() -> None:
        np.square(source, output)
        np.add.reduce(output, -1, out=norms, keepdims=True)
        np.sqrt(norms, norms)
        np.maximum(norms, epsilon, out=norms)
        np.divide(source, norms, output)

    return run


def _bind_quantized(source: Array, zero_point: int, output: Array) -> Thunk:
    if source.size <= _BLOCK:
        return lambda: _quantized(source, zero_point, output)
    length = source.shape[-1]
    rows, results = source.reshape(-1, length), output.reshape(-1, length)
    step = max(1, _BLOCK // length)

    def run() -> None:
        charge(_SCRATCH * step * length)
        for start in range(0, len(rows), step):
            checkpoint()
            _quantized(rows[start : start + step], zero_point, results[start : start + step])

    return run


def _quantized(x: Array, zero_point: int, y: Array) -> None:
    values = np.subtract(x, np.int32(zero_point), dtype=np.int32)
    factors, shifts = inverse_square_root(np.add.reduce(values * values, -1, keepdims=True, dtype=np.int32))
    if factors.size == 1:
        # The usual case, in which whole numbers in place of arrays save passes.
        _rescale(values, factors.item(), shifts.item(), y)
    elif factors.size <= _FEW:
        length = x.shape[-1]
        rows = values.reshape(-1, length), y.reshape(-1, length)
        for row, result, factor, shift in zip(*rows, factors.ravel().tolist(), shifts.ravel().tolist()):
            _rescale(row, factor, shift, result)
    else:
        _rescale(values, factors, shifts, y)


def _rescale(values: Array, factors: Any, shifts: Any, y: Array) -> None:
    if y.dtype == np.int8:
        steps = multiply_by_quantized_multiplier(values, factors, shifts + _OUTPUT_BITS)
        convert(y, clip(steps, _BOUNDS[0], _BOUNDS[1], steps))
    else:
        steps = multiply_by_quantized_multiplier(values << _OUTPUT_BITS, factors, shifts)
        steps += 128
        convert(y, clip(steps, _BOUNDS[2], _BOUNDS[3], steps))


REGISTRATION = takes_halves(Registration(prepare=prepare, bind=bind, pure=True, types=TYPES))
