"""The elementwise StableHLO operators.

The operands have one shape, without broadcasting. Numerics of those that LiteRT has: tflite/kernels/stablehlo_elementwise.h
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.operands import ensure_operands, ensure_same_shape, ensure_same_type
from oplet_builtin_ops.stablehlo import COMPLEX, FLOATS, INTEGERS, SIGNED, ensure_not_quantized

__all__ = ["quietly"]

#: The types for which LiteRT has ADD, MULTIPLY, MAXIMUM and MINIMUM, and those for which it has AND.
ARITHMETIC = (TensorType.FLOAT32, TensorType.FLOAT16, TensorType.FLOAT64, *INTEGERS, TensorType.BOOL)
LOGIC = (*INTEGERS, TensorType.BOOL)
_SHIFTED = (TensorType.INT8, TensorType.INT16, TensorType.INT32)
#: The types of the magnitudes of complex values.
_PARTS = {TensorType.COMPLEX64: TensorType.FLOAT32, TensorType.COMPLEX128: TensorType.FLOAT64}


def quietly(function: Callable[..., Any], *arguments: Any) -> Thunk:
    """Return a zero-argument function that calls `function(*arguments)` with numpy's floating-point warnings off."""

    def run() -> None:
        with np.errstate(all="ignore"):
            function(*arguments)

    return run


def _elementwise(operands: int, function: Callable[..., Any], types: tuple[TensorType, ...], quantized: bool) -> Registration:
    def prepare(context: Context, node: Node) -> None:
        ensure_operands(node, operands)
        output = node.outputs[0]
        ensure_type(node.inputs[0], *types)
        for tensor in (*node.inputs[1:], output):
            ensure_same_type(tensor, node.inputs[0])
        ensure_same_shape(*node.inputs)
        if not quantized:
            ensure_not_quantized(*node.inputs, output)
        context.resize_tensor(output, node.inputs[0].shape)

    def bind(context: Context, node: Node) -> Thunk:
        return quietly(function, *(tensor.data for tensor in node.inputs), node.outputs[0].data)

    return Registration(prepare=prepare, bind=bind, pure=True, types=types)


def unary(function: Callable[[Array, Array], Any], *types: TensorType) -> Registration:
    """Build the registration of a unary op; `function(operand, result)` writes into `result`."""
    return _elementwise(1, function, types, False)


def binary(function: Callable[[Array, Array, Array], Any], *types: TensorType) -> Registration:
    """Build the registration of a binary op; `function(left, right, result)` writes into `result`."""
    return _elementwise(2, function, types, False)


def litert_binary(function: Callable[[Array, Array, Array], Any], *types: TensorType) -> Registration:
    """Build the registration of a binary op that LiteRT implements too; as in LiteRT, it ignores the operands' scales."""
    return _elementwise(2, function, types, True)


def extremum(ufunc: np.ufunc, beats: np.ufunc) -> Registration:
    """Build the registration of StableHLO MAXIMUM or MINIMUM.

    Args:
        ufunc: np.maximum or np.minimum, for integers.
        beats: the comparison for floats: the result is the second operand where beats(second, first), else the first; as in
            LiteRT, a second operand that is NaN is ignored.
    """

    def choose(a: Array, b: Array, target: Array) -> None:
        if a.dtype.kind != "f":
            ufunc(a, b, out=target)
            return
        np.copyto(target, a)
        np.copyto(target, b, where=beats(b, a))

    return litert_binary(choose, *ARITHMETIC)


def in_single_precision(function: Callable[[Array, Array], Any]) -> Callable[[Array, Array], None]:
    """Wrap a multi-step function so that float16 operands are computed in float32 and rounded only once."""

    def run(source: Array, target: Array) -> None:
        if source.dtype.itemsize > 2:
            function(source, target)
        else:
            wide = source.astype(np.float32)
            function(wide, wide)
            target[...] = wide

    return run


def _divide(a: Array, b: Array, target: Array) -> None:
    """Compute the quotient, of integers truncated; as XLA's, an integer divided by zero has all bits set."""
    if a.dtype.kind not in "iu":
        np.divide(a, b, target)
        return
    by_zero = b == 0
    divisor = np.where(by_zero, b.dtype.type(1), b)
    # Less the remainder, the dividend is a multiple of the divisor, so that rounding down is exact.
    np.floor_divide(a - np.fmod(a, divisor), divisor, target)
    np.copyto(target, ~target.dtype.type(0), where=by_zero)


def _power(a: Array, b: Array, target: Array) -> None:
    """Compute powers; integers wrap around, and a negative power of one is its reciprocal, truncated, and 0 for 0."""
    if a.dtype.kind != "i":
        np.power(a, b, target)
        return
    negative = b < 0
    np.power(a, np.where(negative, b & 1, b), target)
    np.copyto(target, a.dtype.type(0), where=negative & (np.abs(a) != 1))
    np.copyto(target, a.dtype.type(1), where=negative & (a == 1))


def _remainder(a: Array, b: Array, target: Array) -> None:
    """Compute the remainder, with the dividend's sign; as XLA's, that of an integer divided by zero is the integer."""
    np.fmod(a, b, target)
    if a.dtype.kind in "iu":
        np.copyto(target, a, where=b == 0)


def _logistic(source: Array, target: Array) -> None:
    np.negative(source, target)
    np.exp(target, target)
    np.add(target, target.dtype.type(1), target)
    np.divide(target.dtype.type(1), target, target)


def _rsqrt(source: Array, target: Array) -> None:
    np.sqrt(source, target)
    np.divide(target.dtype.type(1), target, target)


def _prepare_abs(context: Context, node: Node) -> None:
    ensure_operands(node, 1)
    source, output = node.inputs[0], node.outputs[0]
    ensure_type(source, *FLOATS, *SIGNED, *COMPLEX)
    if source.type in _PARTS:
        ensure_type(output, _PARTS[source.type])
    else:
        ensure_same_type(source, output)
    ensure_not_quantized(source, output)
    context.resize_tensor(output, source.shape)


def _bind_abs(context: Context, node: Node) -> Thunk:
    return quietly(np.absolute, node.inputs[0].data, node.outputs[0].data)


def _prepare_shift(context: Context, node: Node) -> None:
    ensure_operands(node, 2)
    values, amounts = node.inputs
    ensure_type(values, *_SHIFTED)
    ensure_same_type(values, amounts)
    ensure_same_shape(values, amounts)
    context.set_type(node.outputs[0], values.type)
    context.resize_tensor(node.outputs[0], values.shape)


def _bind_shift(context: Context, node: Node) -> Thunk:
    return quietly(np.left_shift, node.inputs[0].data, node.inputs[1].data, node.outputs[0].data)


STABLEHLO_ABS = Registration(prepare=_prepare_abs, bind=_bind_abs, pure=True, types=(*FLOATS, *SIGNED, *COMPLEX))
STABLEHLO_ADD = litert_binary(np.add, *ARITHMETIC)
STABLEHLO_AND = litert_binary(np.bitwise_and, *LOGIC)
STABLEHLO_CBRT = unary(np.cbrt, *FLOATS)
STABLEHLO_COSINE = unary(np.cos, *FLOATS, *COMPLEX)
STABLEHLO_DIVIDE = binary(_divide, *FLOATS, *COMPLEX, *INTEGERS)
STABLEHLO_EXPONENTIAL = unary(np.exp, *FLOATS, *COMPLEX)
STABLEHLO_FLOOR = unary(np.floor, *FLOATS)
STABLEHLO_LOG = unary(np.log, *FLOATS, *COMPLEX)
STABLEHLO_LOGISTIC = unary(in_single_precision(_logistic), *FLOATS, *COMPLEX)
STABLEHLO_MAXIMUM = extremum(np.maximum, np.greater)
STABLEHLO_MINIMUM = extremum(np.minimum, np.less)
STABLEHLO_MULTIPLY = litert_binary(np.multiply, *ARITHMETIC)
STABLEHLO_NEGATE = unary(np.negative, *FLOATS, *COMPLEX, *INTEGERS)
STABLEHLO_OR = binary(np.bitwise_or, *LOGIC)
STABLEHLO_POWER = binary(_power, *FLOATS, *COMPLEX, *INTEGERS)
STABLEHLO_REMAINDER = binary(_remainder, *FLOATS, *INTEGERS)
STABLEHLO_RSQRT = unary(in_single_precision(_rsqrt), *FLOATS, *COMPLEX)
STABLEHLO_SHIFT_LEFT = Registration(
    prepare=_prepare_shift,
    bind=_bind_shift,
    pure=True,
    types=_SHIFTED,
    differences="shifts by 32 or more, or by a negative amount, leave zero; LiteRT's answer depends on the length of the tensor",
)
STABLEHLO_SUBTRACT = binary(np.subtract, *FLOATS, *COMPLEX, *INTEGERS)
STABLEHLO_TANH = unary(np.tanh, *FLOATS, *COMPLEX)
