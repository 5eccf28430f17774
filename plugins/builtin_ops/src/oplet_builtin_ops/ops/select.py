"""SELECT: x where the condition is true, else y. A condition of one dimension selects slices.

Numerics: tflite/kernels/select.cc (kVersionOne)
"""

from __future__ import annotations

from oplet import Context, Node, Registration, ensure
from oplet.kernels.arrays import Thunk
from oplet_builtin_ops.elementwise.selection import bind_selection, keeps_declared_shape, prepare_selection
from oplet_builtin_ops.types import NUMBERS


def prepare(context: Context, node: Node) -> None:
    condition, x, y = prepare_selection(context, node)
    output = node.outputs[0]
    if keeps_declared_shape(node):
        context.resize_tensor(output, output.shape)
        return
    ensure(x.shape == y.shape, f"{x} and {y} must have the same shape.")
    ensure(
        condition.shape in (x.shape, (), x.shape[:1]),
        f"{condition} must be a scalar, have the shape of {x}, or be a vector of its first dimension.",
    )
    context.resize_tensor(output, x.shape)


def bind(context: Context, node: Node) -> Thunk:
    return bind_selection(node, slices=True)


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=NUMBERS)
