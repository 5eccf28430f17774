"""BITWISE_XOR, LOGICAL_AND and LOGICAL_OR, and shared parts of binary elementwise ops that broadcast and have no fused activation.

Numerics: tflite/kernels/bitwise_xor.cc, logical.cc, internal/reference/binary_function.h
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oplet import Context, Node, Registration, Tensor, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.broadcasting import broadcast_shape
from oplet.kernels.operands import ensure_operands
from oplet.kernels.shapes import offer_in_place
from oplet.schema.enums import ActivationFunctionType
from oplet_builtin_ops.elementwise.binary_arithmetic import bind_elementwise, long_rows
from oplet_builtin_ops.types import INTEGERS

__all__ = ["bind_steps", "ensure_no_zeros", "prepare_pairwise", "refuse_zero"]


def prepare_pairwise(
    context: Context, node: Node, *types: TensorType, result: TensorType | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Check a binary node with inputs of one type; set the output's broadcast shape and type, overriding the declared ones.

    Args:
        result: the output's type; that of the inputs if None.
    """
    ensure_operands(node, 2)
    a, b = node.inputs
    ensure_type(a, *types)
    ensure(a.type == b.type, lambda: f"the inputs must have the same type: {a}, {b}.")
    output = node.outputs[0]
    context.set_type(output, a.type if result is None else result)
    context.resize_tensor(output, broadcast_shape(a, b))
    return a, b, output


def pairwise_registration(ufunc: np.ufunc, *types: TensorType, result: TensorType | None = None) -> Registration:
    """Build the registration of a binary op that is one numpy ufunc on unquantized numbers."""

    def prepare(context: Context, node: Node) -> None:
        prepare_pairwise(context, node, *types, result=result)
        offer_in_place(node)

    def bind(context: Context, node: Node) -> Thunk:
        return bind_elementwise(ufunc, node, ActivationFunctionType.NONE)

    return Registration(prepare=prepare, bind=bind, pure=True, types=types)


def bind_steps(node: Node, steps: Callable[[Array, Array, Array], Any]) -> Thunk:
    """Return a function that calls `steps(a, b, output)` on the node's three arrays, reshaped for a long innermost loop."""
    a, b, output = long_rows(node, node.inputs[0], node.inputs[1], node.outputs[0])
    return lambda: steps(a, b, output)


def ensure_no_zeros(divisors: Tensor, run: Thunk, zero: int = 0) -> Thunk:
    """Wrap `run`: the function raises an error if a divisor is zero, else it calls `run`.

    Args:
        divisors: the tensor of divisors.
        run: the function that computes the op.
        zero: the stored value that means zero.
    """
    values = divisors.data

    def check() -> None:
        if np.count_nonzero(values == zero):
            refuse_zero(divisors, zero)
        run()

    return check


def refuse_zero(divisors: Tensor, zero: int = 0) -> None:
    """Raise the error for a zero divisor; `zero` is the stored value that means 0."""
    ensure(False, f"Division by 0: {divisors} holds {zero}.")


BITWISE_XOR = pairwise_registration(np.bitwise_xor, *INTEGERS)
LOGICAL_AND = pairwise_registration(np.logical_and, TensorType.BOOL)
LOGICAL_OR = pairwise_registration(np.logical_or, TensorType.BOOL)
