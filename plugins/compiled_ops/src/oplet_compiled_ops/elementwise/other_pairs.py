"""Registrations of DIV, MAXIMUM and MINIMUM, with a broadcast second operand: floats by `float_pairs`, integers by `plain_pairs`."""

from __future__ import annotations

from oplet import Context, Node, NodeLimits, Registration, TensorType
from oplet.kernels.activations import float_activation_range
from oplet.schema.enums import ActivationFunctionType
from oplet_compiled_ops.elementwise.flat import bind_float_pair, float_pair_kernel, pair_of
from oplet_compiled_ops.elementwise.plain.plain_pairs import SIGNED, plan_integers
from oplet_compiled_ops.overriding import Bind, override
from oplet_compiled_ops.threads.team import ready

__all__ = ["other_pair_registration"]


def other_pair_registration(builtin: Registration, op: int, of_integers: int | None = None) -> Registration:
    """Build the registration of DIV, MAXIMUM or MINIMUM.

    Args:
        builtin: the numpy kernel's registration.
        op: DIVIDE, LARGER or SMALLER of `elementwise`.
        of_integers: the same operation on integers, one of `plain_pairs`'s constants; None where numpy's kernel serves integers.
    """
    codes = {} if of_integers is None else {TensorType.UINT8: "u1", **SIGNED}

    def plan(context: Context, node: Node) -> Bind:
        if of_integers is not None and node.inputs[0].type in codes:
            return plan_integers(context, node, of_integers, codes[node.inputs[0].type])
        found, before = pair_of(context, node)
        large, small, how, exchanged = found
        activation = node.prepared if isinstance(node.prepared, ActivationFunctionType) else ActivationFunctionType.NONE
        low, high = (float(bound) for bound in float_activation_range(activation))
        ready(float_pair_kernel(op + exchanged, how.per_row))
        output, threads = node.outputs[0], context.num_threads
        return lambda: bind_float_pair(op + exchanged, large, small.data, output, how, low, high, threads, before())

    types = [TensorType.FLOAT32, *codes]
    return override(builtin, plan, NodeLimits(inputs=[types, types]))
