"""VAR_HANDLE: the handle of a resource variable, named by container and name. See `oplet_builtin_ops.control.resources`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.operands import ensure_operands
from oplet.schema.options import VarHandleOptions
from oplet_builtin_ops.control.resources import variable_number


def init(context: Context, buffer: Any) -> int:
    """Return the integer handle of a VAR_HANDLE node's variable; handles are numbered in the order in which nodes are loaded."""
    options = buffer if isinstance(buffer, VarHandleOptions) else VarHandleOptions()
    return variable_number(context, options.container or "", options.shared_name or "")


def prepare(context: Context, node: Node) -> None:
    """Check the output of a VAR_HANDLE node; its shape is the declared one."""
    ensure_operands(node, 0)
    ensure_type(node.outputs[0], TensorType.RESOURCE, TensorType.INT32)
    ensure(node.outputs[0].size == 1, f"{node.outputs[0]} has {node.outputs[0].size} values; a handle is one.")


def bind(context: Context, node: Node) -> Callable[[], None]:
    """Return a function that writes the variable's handle."""
    output, number = node.outputs[0].data, node.user_data

    def run() -> None:
        output[...] = number

    return run


REGISTRATION = Registration(init=init, prepare=prepare, bind=bind)
