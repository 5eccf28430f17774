"""L2_NORMALIZATION along the last dimension: x divided by the square root of the sum of squares.

Numerics: tflite/kernels/l2norm.cc, internal/reference/l2normalization.h, integer_ops/l2normalization.h
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, charge, checkpoint, ensure
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.fixed_point import multiply_by_quantized_multiplier
from oplet.schema.enums import ActivationFunctionType
from oplet.schema.options import L2NormOptions
from oplet_builtin_ops.arithmetic.fixed_point_functions import inverse_square_root
from oplet_builtin_ops.arithmetic.single_precision import takes_halves
from oplet_builtin_ops.elementwise.elementwise import prepare_elementwise

TYPES = (TensorType.FLOAT32, TensorType.INT8, TensorType.UINT8)
#: The smallest norm to divide by.
_EPSILON = 1e-6
#: The output's scale is 2**-7.
_OUTPUT_BITS = 7
#: The values per block, and their bytes of scratch.
_BLOCK, _SCRATCH = 1 << 16, 32


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
    values = x.astype(np.int32) - np.int32(zero_point)
    factors, shifts = inverse_square_root(np.add.reduce(values * values, -1, keepdims=True, dtype=np.int32))
    if y.dtype == np.int8:
        steps = multiply_by_quantized_multiplier(values, factors, shifts + _OUTPUT_BITS)
        y[...] = np.clip(steps, -128, 127)
    else:
        steps = multiply_by_quantized_multiplier(values << _OUTPUT_BITS, factors, shifts)
        y[...] = np.clip(steps + 128, 0, 255)


REGISTRATION = takes_halves(Registration(prepare=prepare, bind=bind, pure=True, types=TYPES))
