"""READ_VARIABLE: a resource variable's value. Behaviour: tflite/kernels/read_variable.cc.

The output has the shape in the model, or, if that is a scalar (which may mean an unknown shape), the value's shape.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oplet import Context, Node, Registration, ensure
from oplet.kernels.operands import ensure_operands
from oplet_builtin_ops.control.resources import HANDLES, Variable, check_handle, find


def prepare(context: Context, node: Node) -> None:
    """Check the type and shape of a READ_VARIABLE node's handle; the variable may not exist yet."""
    ensure_operands(node, 1)
    check_handle(node.inputs[0])
    if node.cached("is scalar", (), lambda: not node.outputs[0].shape):
        context.set_dynamic(node.outputs[0])


def bind(context: Context, node: Node) -> Callable[[], None]:
    """Return a function that copies the variable's current value to the output."""
    handle, output = node.inputs[0].data, node.outputs[0]
    dynamic = output.is_dynamic

    def run() -> None:
        variable = find(context, handle, Variable)
        value = variable.value
        if value is None or variable.type is not output.type:
            ensure(False, f"the variable {handle.item()} is of type {variable.type.name}, it is read into {output}.")
        elif dynamic:
            context.resize_tensor(output, value.shape)
            np.copyto(output.data, value)
        else:
            fits = value.size == output.size
            ensure(fits, f"the variable {handle.item()} is of shape {list(value.shape)}, it is read into {output}.")
            np.copyto(output.data, value.reshape(output.shape))

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, types=HANDLES)
