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
from oplet_builtin_ops.stablehlo import INTEGERS, ensure_not_quantized

__all__ = ["ARITHMETIC", "LOGIC", "binary", "extremum", "in_single_precision", "litert_binary", "quietly", "unary"]

#: The types for which LiteRT has ADD, MULTIPLY, MAXIMUM and MINIMUM, and those for which it has AND.
ARITHMETIC = (TensorType.FLOAT32, TensorType.FLOAT16, TensorType.FLOAT64, *INTEGERS, TensorType.BOOL)
LOGIC = (*INTEGERS, TensorType.BOOL)


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
