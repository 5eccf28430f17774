"""Resource variables: their handles, named by container and name (VAR_HANDLE), how they are set (ASSIGN_VARIABLE) and read (READ_VARIABLE).

The output of READ_VARIABLE has the shape in the model, or, if that is a scalar (which may mean an unknown shape), the value's.

Behaviour: tflite/kernels/var_handle.cc, assign_variable.cc, read_variable.cc
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.limits import kept_copy
from oplet.kernels.operands import ensure_operands
from oplet.schema.options import VarHandleOptions
from oplet_builtin_ops.control.resources import HANDLES, VARIABLE, Variable, check_handle, find, find_or_make, variable_number


def _init_var_handle(context: Context, buffer: Any) -> int:
    """Return the integer handle of a VAR_HANDLE node's variable; handles are numbered in the order in which nodes are loaded."""
    options = buffer if isinstance(buffer, VarHandleOptions) else VarHandleOptions()
    return variable_number(context, options.container or "", options.shared_name or "")


def _prepare_var_handle(context: Context, node: Node) -> None:
    """Check the output of a VAR_HANDLE node; its shape is the declared one."""
    ensure_operands(node, 0)
    ensure_type(node.outputs[0], TensorType.RESOURCE, TensorType.INT32)
    ensure(node.outputs[0].size == 1, f"{node.outputs[0]} has {node.outputs[0].size} values; a handle is one.")


def _bind_var_handle(context: Context, node: Node) -> Callable[[], None]:
    """Return a function that writes the variable's handle."""
    output, number = node.outputs[0].data, node.user_data

    def run() -> None:
        output[...] = number

    return run


def _prepare_assign_variable(context: Context, node: Node) -> None:
    """Check the type and shape of the handle of an ASSIGN_VARIABLE node."""
    ensure_operands(node, 2, 0)
    check_handle(node.inputs[0])


def _bind_assign_variable(context: Context, node: Node) -> Callable[[], None]:
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


def _prepare_read_variable(context: Context, node: Node) -> None:
    """Check the type and shape of a READ_VARIABLE node's handle; the variable may not exist yet."""
    ensure_operands(node, 1)
    check_handle(node.inputs[0])
    if node.cached("is scalar", (), lambda: not node.outputs[0].shape):
        context.set_dynamic(node.outputs[0])


def _bind_read_variable(context: Context, node: Node) -> Callable[[], None]:
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


VAR_HANDLE = Registration(init=_init_var_handle, prepare=_prepare_var_handle, bind=_bind_var_handle)
ASSIGN_VARIABLE = Registration(prepare=_prepare_assign_variable, bind=_bind_assign_variable)
READ_VARIABLE = Registration(prepare=_prepare_read_variable, bind=_bind_read_variable, types=HANDLES)
