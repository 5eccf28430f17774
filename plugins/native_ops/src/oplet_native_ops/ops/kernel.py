"""Registrations whose methods call a library's functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oplet import BuiltinOperator, Context, Node, Registration
from oplet.schema.table import Table
from oplet_native_ops.ops.entry import Kernel
from oplet_native_ops.ops.node import NativeNode
from oplet_native_ops.values.builtin_data import builtin_data

__all__ = ["bind", "free", "native_registration", "prepare"]


def native_registration(path: str, load: Callable[[], Kernel], builtin: BuiltinOperator | None = None) -> Registration:
    """Build the registration of a library's operator.

    Args:
        path: the library's file, named in reports and included in builds.
        load: returns the operator; called when the first node that uses it is loaded.
        builtin: the built-in operator that it replaces, None for a custom op.
    """

    def init(context: Context, buffer: Any) -> NativeNode:
        if builtin is None:
            return NativeNode(load(), context, bytes(buffer or b""))
        table = buffer if isinstance(buffer, Table) else None
        return NativeNode(load(), context, builtin_data(builtin, table))

    return Registration(init=init, free=free, prepare=prepare, bind=bind, library=path)


# The methods of nodes whose `init` gave an object that runs them: an operator's, or a partition's.


def free(context: Context, node: Any) -> None:
    node.close()


def prepare(context: Context, node: Node) -> None:
    node.user_data.prepare(context, node)


def bind(context: Context, node: Node) -> Callable[[], None]:
    thunk: Callable[[], None] = node.user_data.bind(context, node)
    return thunk
