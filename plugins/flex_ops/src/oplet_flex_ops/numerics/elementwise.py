"""Registrations of unary and broadcasting binary elementwise ops from numpy functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from oplet import Node, Registration, TensorType, checkpoint
from oplet.kernels.arrays import Array, Shape
from oplet.kernels.broadcasting import broadcast_shape
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.numerics.operator import Shapes, operator, writing
from oplet_flex_ops.numerics.types import SHORT_FLOATS

__all__ = ["IN_DOUBLE", "binary", "broadcast_pair", "in_parts", "same_shape", "special", "unary"]

#: Special functions are computed in double precision and rounded.
IN_DOUBLE = dict.fromkeys((*SHORT_FLOATS, TensorType.FLOAT32), TensorType.FLOAT64)
#: The values that a function of many steps takes at a time, so that its scratch stays small.
_PART = 1 << 15


def same_shape(node: Node, attributes: Attributes) -> Sequence[Shape]:
    """Return the first input's shape for every output: the shape function of elementwise ops."""
    return [node.inputs[0].shape] * len(node.outputs)


def broadcast_pair(node: Node, attributes: Attributes) -> Sequence[Shape]:
    """Return the broadcast shape of the two inputs: the shape function of binary ops."""
    return [broadcast_shape(*node.inputs)]


def unary(
    function: Callable[[Array, Array], Any], *types: TensorType, result: str = "T", widened: Mapping[Any, Any] | None = None
) -> Registration:
    """Build the registration of a unary op; `function(operand, result)` writes into `result`.

    Args:
        function: takes the operand and the array for the result.
        types: what its attribute `T` may be.
        result: the output's type, or the name of the type attribute that holds it; "T" for the operand's type.
        widened: maps types to the type that they are computed in; None for float16 and bfloat16 in float32.
    """
    return operator(f"T -> {result}", same_shape, widened=widened, T=types)(writing(function))


def binary(
    function: Callable[[Array, Array, Array], Any],
    *types: TensorType,
    signature: str = "T, T -> T",
    widened: Mapping[Any, Any] | None = None,
    shapes: Shapes = broadcast_pair,
) -> Registration:
    """Build the registration of a broadcasting binary op; `function(left, right, result)` writes into `result`.

    The other arguments are those of `unary`; `signature` has the types of operands and result, `shapes` returns the output's shape.
    """
    return operator(signature, shapes, widened=widened, T=types)(writing(function))


def special(function: Callable[..., Array], *types: TensorType, operands: int = 1) -> Registration:
    """Build the registration of a special function of one or two `operands`, which takes and returns float64 arrays."""
    make = unary if operands == 1 else binary
    return make(in_parts(function), *types, widened=IN_DOUBLE)


def in_parts(function: Callable[..., Array]) -> Callable[..., None]:
    """Wrap `function` of float64 arrays: the result is computed part by part and written into the last argument."""

    def run(*arrays: Array) -> None:
        *operands, target = arrays
        if target.size <= _PART:
            flat = [np.broadcast_to(operand, target.shape).ravel() for operand in operands]
            target[...] = function(*flat).reshape(target.shape)
            return
        out = target.reshape(-1)
        views = [np.broadcast_to(operand, target.shape).flat for operand in operands]
        for start in range(0, target.size, _PART):
            checkpoint()
            out[start : start + _PART] = function(*(view[start : start + _PART] for view in views))

    return run
