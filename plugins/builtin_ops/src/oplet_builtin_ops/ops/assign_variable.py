"""ASSIGN_VARIABLE: set a resource variable's type, shape and value. Behaviour: tflite/kernels/assign_variable.cc."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oplet import Context, Node, Registration
from oplet.kernels.limits import kept_copy
from oplet.kernels.operands import ensure_operands
from oplet_builtin_ops.control.resources import VARIABLE, Variable, check_handle, find_or_make


def prepare(context: Context, node: Node) -> None:
    """Check the type and shape of the handle of an ASSIGN_VARIABLE node."""
    ensure_operands(node, 2, 0)
    check_handle(node.inputs[0])


def bind(context: Context, node: Node) -> Callable[[], None]:
    """Return a function that copies the value into the variable, in place if the variable's array has its type and shape."""
    handle, source = node.inputs[0].data, node.inputs[1]
    type, value = source.type, source.data

    def run() -> None:
        variable = find_or_make(context, handle.item(), Variable())
        if variable.value is None or variable.value.shape != value.shape or variable.type is not type or value.dtype.hasobject:
            variable.type, variable.value = type, kept_copy(value, besides=VARIABLE)
        else:
            np.copyto(variable.value, value)

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind)
