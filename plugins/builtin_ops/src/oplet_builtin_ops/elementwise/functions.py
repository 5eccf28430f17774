"""Functions of one operand: ABS, CEIL, COS, EXP, FLOOR, LOG, LOGICAL_NOT, NEG, ROUND, RSQRT, SIGN, SIN, SQRT and SQUARE.

Numerics: tflite/kernels/elementwise.cc, ceil.cc, exp.cc, floor.cc, neg.cc, round.cc, sign.cc
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from oplet import Context, Node, Registration, Tensor, TensorType
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.fixed_point import int32_of, multiply_by_quantized_multiplier, quantize_multiplier, quantized_range, quotient
from oplet.kernels.shapes import offer_in_place
from oplet_builtin_ops.arithmetic.fixed_point_functions import inverse_square_root
from oplet_builtin_ops.arithmetic.lookup import lookup_table
from oplet_builtin_ops.arithmetic.scaling import ensure_zero_point_is_zero
from oplet_builtin_ops.arithmetic.single_precision import takes_halves
from oplet_builtin_ops.elementwise.activations import scale_ratio, scaled
from oplet_builtin_ops.elementwise.elementwise import (
    bind_table,
    elementwise_registration,
    function_table,
    prepare_elementwise,
    table_registration,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FLOATS = (TensorType.FLOAT32, TensorType.FLOAT16, TensorType.BFLOAT16)
_QUANTIZED = (TensorType.INT8, TensorType.INT16)
_EXP_TYPES = (TensorType.FLOAT32, *_QUANTIZED)
#: The fraction bits of the root that RSQRT takes before it is scaled.
_FRACTION_BITS = 20


def _abs_table(source: Tensor, output: Tensor) -> Array:
    def rule(values: NDArray[np.int64]) -> NDArray[np.int64]:
        magnitudes = np.abs(values - source.zero_point)
        if source.scale != output.scale:
            magnitudes = scaled(magnitudes, scale_ratio(source, output))
        return magnitudes + output.zero_point

    return lookup_table(source.type, output.type, rule)


def _exp(x: NDArray[Any]) -> NDArray[Any]:
    with np.errstate(over="ignore"):
        return np.exp(x.astype(np.float64))


def _prepare_exp(context: Context, node: Node) -> None:
    source, output = prepare_elementwise(context, node, *_EXP_TYPES, derive=True)
    offer_in_place(node)
    if source.type == TensorType.INT16:
        ensure_zero_point_is_zero(source, output)
    if source.type != TensorType.FLOAT32:
        node.prepared = node.cached(("table", source.type, output.type), (), lambda: function_table(source, output, _exp))


def _bind_exp(context: Context, node: Node) -> Thunk:
    if node.inputs[0].type != TensorType.FLOAT32:
        return bind_table(node)
    source, output = node.inputs[0].data, node.outputs[0].data

    def run() -> None:
        np.exp(source, output)

    return run


def _log_table(source: Tensor, output: Tensor) -> Array:
    lowest = np.float32(quantized_range(source.type)[0] - output.zero_point) * np.float32(output.scale)

    def log(x: NDArray[Any]) -> NDArray[Any]:
        # Values without a logarithm become the smallest number of the output; NaN stays NaN.
        return np.where(x <= 0, lowest, np.log(np.where(x <= 0, 1, x).astype(np.float64)))

    return function_table(source, output, log)


def _sqrt_table(source: Tensor, output: Tensor) -> Array:
    """Return the roots, which are truncated, not rounded."""

    def rule(values: NDArray[np.int64]) -> NDArray[np.int64]:
        steps = np.maximum(values - source.zero_point, 0).astype(np.float32)
        with np.errstate(all="ignore"):
            roots = np.sqrt(np.float32(source.scale) * steps) / np.float32(output.scale)
        whole = int32_of(roots).astype(np.int64)
        return (whole + output.zero_point).astype(np.int32).astype(np.int64)

    return lookup_table(source.type, output.type, rule)


def _rsqrt_table(source: Tensor, output: Tensor) -> Array:
    if source.type == TensorType.INT16:
        largest = np.float32(32767) * np.float32(output.scale)

        def inverse_root(x: NDArray[Any]) -> NDArray[Any]:
            return np.asarray(np.where(x <= 0, largest, np.float32(1) / np.sqrt(np.where(x <= 0, 1, x))))

        return function_table(source, output, inverse_root)
    root = np.sqrt(np.float32(source.scale)) * np.float32(output.scale)
    multiplier, shift = quantize_multiplier(quotient(1.0, float(root)))

    def rule(values: NDArray[np.int64]) -> NDArray[np.int64]:
        steps = np.maximum(values - source.zero_point, 0)
        factors, shifts = inverse_square_root(steps)
        roots = multiply_by_quantized_multiplier(np.ones_like(factors), factors, shifts + _FRACTION_BITS)
        scaled = multiply_by_quantized_multiplier(roots, multiplier, shift - _FRACTION_BITS).astype(np.int64)
        return np.where(steps > 0, scaled + output.zero_point, 127)

    return lookup_table(source.type, output.type, rule)


def _inverse_root(x: Array, y: Array) -> None:
    np.sqrt(x, y)
    np.reciprocal(y, y)


ABS = takes_halves(table_registration(np.abs, _abs_table, (TensorType.FLOAT32, TensorType.INT16, TensorType.INT32), _QUANTIZED))
CEIL = takes_halves(elementwise_registration(np.ceil, TensorType.FLOAT32, derive=True))
COS = elementwise_registration(np.cos, TensorType.FLOAT32, TensorType.FLOAT16)
EXP = takes_halves(Registration(prepare=_prepare_exp, bind=_bind_exp, pure=True, types=_EXP_TYPES))
FLOOR = elementwise_registration(np.floor, *_FLOATS, derive=True)
LOG = takes_halves(table_registration(np.log, _log_table, (TensorType.FLOAT32,), _QUANTIZED))
LOGICAL_NOT = elementwise_registration(np.logical_not, TensorType.BOOL)
# Integers wrap around and are not rescaled.
NEG = elementwise_registration(
    np.negative, *_FLOATS, TensorType.INT8, TensorType.INT16, TensorType.INT32, TensorType.INT64, derive=True
)
# Halves go to the even integer.
ROUND = elementwise_registration(np.rint, *_FLOATS, derive=True)
RSQRT = takes_halves(table_registration(_inverse_root, _rsqrt_table, (TensorType.FLOAT32,), _QUANTIZED, positive=True))
SIGN = elementwise_registration(np.sign, TensorType.FLOAT32, TensorType.FLOAT64, TensorType.INT32)
SIN = elementwise_registration(np.sin, TensorType.FLOAT32, TensorType.FLOAT16)
SQRT = takes_halves(table_registration(np.sqrt, _sqrt_table, (TensorType.FLOAT32,), _QUANTIZED, positive=True))
SQUARE = takes_halves(elementwise_registration(np.square, TensorType.FLOAT32))
