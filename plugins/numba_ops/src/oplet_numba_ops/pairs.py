"""ADD, SUB and MUL: which of their nodes compiled loops serve."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oplet import Context, Node, Registration, Tensor, TensorType
from oplet.schema.enums import ActivationFunctionType
from oplet_builtin_ops.arithmetic.fixed_point import float_activation_range
from oplet_numba_ops.broadcasting import Repetition, repetition
from oplet_numba_ops.float_pairs import bind_float_pair
from oplet_numba_ops.overriding import Bind, override

__all__ = ["Operands", "operands", "pair_registration"]

#: The operand of the output's shape, the one that may repeat, how it does, and whether they were exchanged.
Operands = tuple[Tensor, Tensor, Repetition, bool]


def operands(node: Node) -> Operands | None:
    """The operands of a node whose output has the shape of one of them; None where compiled loops do not serve it."""
    a, b = node.inputs
    output = node.outputs[0]
    if not output.size:
        return None
    for large, small, exchanged in ((a, b, False), (b, a, True)):
        if large.size == output.size and (how := repetition(output.shape, small.shape)) is not None:
            return large, small, how, exchanged
    return None


def pair_registration(
    builtin: Registration, op: int, exchanged_op: int, quantized: Callable[[Context, Node, Operands], Bind | None]
) -> Registration:
    """The registration of ADD, SUB or MUL.

    Args:
        op: of float_pairs.
        exchanged_op: the same with its operands exchanged.
        quantized: plans integers.
    """

    def plan(context: Context, node: Node) -> Bind | None:
        found = operands(node)
        if found is None:
            return None
        large, small, how, exchanged = found
        if node.inputs[0].type != TensorType.FLOAT32:
            return quantized(context, node, found)
        activation = node.prepared
        if not isinstance(activation, ActivationFunctionType):
            return None
        low, high = float_activation_range(activation)
        plain = how.blocks == how.rows == 1
        if plain and np.isinf((low, high)).all():
            return None  # one pass of numpy's, which is as fast
        chosen = exchanged_op if exchanged else op
        return lambda: bind_float_pair(chosen, large, small.data, node.outputs[0], how, low, high)

    return override(builtin, plan)
