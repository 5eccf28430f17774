"""Registrations of unary ops: a kernel for some types, look-up tables for quantized ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from oplet import Context, Node, NodeLimits, Registration, TensorType, decline
from oplet_compiled_ops.elementwise.flat import plan_flat
from oplet_compiled_ops.library.kernels import Kernel
from oplet_compiled_ops.overriding import Bind, override
from oplet_compiled_ops.threads.splitting import WORTH_VALUES

__all__ = ["FEW", "map_registration"]

#: The most numbers for which functions of the C library are faster than numpy's, which compute several at a time.
FEW = 256


def map_registration(
    builtin: Registration,
    kernels: Mapping[TensorType, Kernel],
    tabled: Sequence[TensorType] = (),
    *,
    positive: bool = False,
    most: int = 0,
) -> Registration:
    """Build the registration of a unary op from its compiled kernels by type.

    Args:
        builtin: the numpy kernel's registration.
        kernels: for each type of unquantized numbers the kernel, which takes the flat input and output.
        tabled: the types of quantized numbers, which are looked up in the table that the numpy kernel makes.
        positive: whether a quantized value below the zero point (a negative number) is an error.
        most: the most elements of a node that `kernels` serve, as numpy is faster for more; 0 for any number.
    """

    def plan(context: Context, node: Node) -> Bind:
        source, output = node.inputs[0], node.outputs[0]
        if source.type in tabled and node.prepared is not None:
            from oplet_compiled_ops.elementwise.maps.tables import plan_table  # here, as floats have none

            return plan_table(context, node, positive)
        kernel = kernels.get(source.type)
        if kernel is None or not source.size or (most and source.size > most):
            decline("numpy is faster for so many numbers, or there are none, or its type has no kernel.")
        bits = "u1" if source.type is TensorType.BOOL else None
        return plan_flat(context, kernel, (source, output), worth=WORTH_VALUES // 4, bits=bits)

    return override(builtin, plan, NodeLimits(inputs=[list(dict.fromkeys((*kernels, *tabled)))]))
