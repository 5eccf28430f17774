"""ADD, SUB and MUL: their registrations, and which of float, quantized and plain integer loops serves a node, if any."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from oplet import Context, Node, NodeLimits, Registration, TensorType, decline
from oplet.kernels.activations import float_activation_range
from oplet.kernels.shapes import offer_in_place
from oplet.schema.enums import ActivationFunctionType
from oplet_compiled_ops.elementwise.flat import (
    bind_float_pair,
    bind_quantized_pair,
    float_pair_kernel,
    pair_of,
    quantized_pair_kernel,
)
from oplet_compiled_ops.elementwise.plain.broadcasting import operands
from oplet_compiled_ops.overriding import Bind, Thunk, override
from oplet_compiled_ops.threads.team import Step, ready

if TYPE_CHECKING:
    from oplet_compiled_ops.elementwise.plain.broadcasting import Operands

__all__ = ["pair_registration", "plan_product", "plan_sum"]

#: The integers without scales.
_INTEGERS = {TensorType.INT16: "i2", TensorType.INT32: "i4", TensorType.INT64: "i8"}
_LIMITS = NodeLimits(inputs=[[TensorType.FLOAT32, TensorType.INT8, TensorType.UINT8, *_INTEGERS]])
#: Plans a quantized node, from its operands (`Operands`) and what returns the steps that come first when it is bound.
PlanQuantized = Callable[[Context, Node, "Operands", Callable[[], Sequence[Step]]], Bind]


def pair_registration(
    builtin: Registration, op: int, exchanged_op: int, quantized: PlanQuantized, of_integers: int
) -> Registration:
    """Build the registration of ADD, SUB or MUL.

    Args:
        builtin: the numpy kernel's registration.
        op: the operation on floats, one of `elementwise`'s constants.
        exchanged_op: the operation that gives the same with exchanged operands.
        quantized: plans nodes of quantized numbers.
        of_integers: the operation on unquantized integers, one of `elementwise.plain`'s constants.
    """

    def plan(context: Context, node: Node) -> Bind:
        if node.inputs[0].type in _INTEGERS and isinstance(node.prepared, ActivationFunctionType):
            from oplet_compiled_ops.elementwise.plain.plain_pairs import plan_integers  # as all here, only for nodes of this kind

            return plan_integers(context, node, of_integers, _INTEGERS[node.inputs[0].type], node.prepared)
        found: Operands | None = operands(node)
        steps: Callable[[], Sequence[Step]] = tuple
        if found is None:
            found, steps = pair_of(context, node)
        large, small, how, exchanged = found
        if node.inputs[0].type != TensorType.FLOAT32:
            return quantized(context, node, found, steps)
        activation = node.prepared
        if not isinstance(activation, ActivationFunctionType):
            decline("its numbers are of a kind that it does not compute with.")
        low, high = (float(bound) for bound in float_activation_range(activation))
        chosen, other = (exchanged_op, op) if exchanged else (op, exchanged_op)
        ready(*(float_pair_kernel(each, how.per_row) for each in {chosen, other}))
        output = node.outputs[0]
        if steps is tuple:
            offer_in_place(node)
        # Without the node, which would keep itself alive by what it has prepared.
        may_be_over = steps is tuple and small is not large and small in node.in_place

        def bind() -> Thunk:
            if may_be_over and np.may_share_memory(small.data, output.data):
                return bind_float_pair(other, small, large.data, output, how, low, high, context.num_threads)
            return bind_float_pair(chosen, large, small.data, output, how, low, high, context.num_threads, steps())

        return bind

    return override(builtin, plan, _LIMITS)


def plan_sum(subtracts: bool) -> PlanQuantized:
    """Return a function that plans nodes of ADD, or of SUB if `subtracts`, of quantized numbers."""

    def plan(context: Context, node: Node, found: Operands, before: Callable[[], Sequence[Step]]) -> Bind:
        from oplet_builtin_ops.elementwise.binary_arithmetic import SumScaling
        from oplet_compiled_ops.elementwise.fixed_point import scaling

        general = node.prepared
        # The left shift may overflow int32, and wraps around in the format's arithmetic, which the compiled loop does not imitate.
        if not isinstance(general, SumScaling) or general.shift > 0:
            decline("its numbers may wrap around, or are of a kind that it does not compute with.")
        large, small, how, exchanged = found
        signs = (0, -1 if subtracts else 0)
        parts = [
            (share.zero_point, *scaling(share.multiplier, share.shift, share.left_shift), sign)
            for share, sign in zip(general.shares, signs)
        ]
        if exchanged:
            parts.reverse()
        ready(quantized_pair_kernel(how, node.outputs[0].type))
        constants = (*parts[0], *parts[1], *scaling(general.multiplier, general.shift), general.zero_point, *general.bounds)
        return lambda: bind_quantized_pair(
            False, large, small.data, node.outputs[0], how, constants, context.num_threads, before()
        )

    return plan


def plan_product(context: Context, node: Node, found: Operands, before: Callable[[], Sequence[Step]]) -> Bind:
    """Plan a quantized MUL node, given its operands; `before` returns steps that run first and expand operands."""
    from oplet_builtin_ops.elementwise.binary_arithmetic import ProductScaling
    from oplet_compiled_ops.elementwise.fixed_point import scaling

    large, small, how, exchanged = found
    first, second = (tensor.zero_point for tensor in (node.inputs[::-1] if exchanged else node.inputs))
    output, factors = node.outputs[0], node.prepared
    # A left shift beyond 32 bits wraps around, which the compiled loop does not imitate.
    wraps = isinstance(factors, ProductScaling) and factors.shift > (0 if large.type == TensorType.INT16 else 14)
    if not isinstance(factors, ProductScaling) or large.type != output.type or wraps:
        decline("its numbers may wrap around, or are of a kind that it does not compute with.")
    ready(quantized_pair_kernel(how, output.type))
    steps = scaling(factors.multiplier, factors.shift)
    constants = (first, second, *steps, output.zero_point, *factors.bounds)
    return lambda: bind_quantized_pair(True, large, small.data, output, how, constants, context.num_threads, before())
