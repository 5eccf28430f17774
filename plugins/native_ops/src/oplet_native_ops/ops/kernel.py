"""Registrations of oplet whose methods are a library's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oplet import BuiltinOperator, Context, Node, Registration
from oplet.schema.table import Table
from oplet_native_ops.ops.entry import Kernel
from oplet_native_ops.ops.node import NativeNode
from oplet_native_ops.values.builtin_data import builtin_data

__all__ = ["native_registration"]


def native_registration(path: str, load: Callable[[], Kernel], builtin: BuiltinOperator | None = None) -> Registration:
    """The registration of an operator of a library.

    Args:
        path: the library's file, which reports name and builds carry.
        load: gives the operator; called when the first node of a model comes to it.
        builtin: the built-in operator that it replaces, None for a custom op.
    """

    def init(context: Context, buffer: Any) -> NativeNode:
        if builtin is None:
            return NativeNode(load(), context, bytes(buffer or b""))
        table = buffer if isinstance(buffer, Table) else None
        return NativeNode(load(), context, builtin_data(builtin, table))

    return Registration(init=init, free=_free, prepare=_prepare, bind=_bind, library=path)


def _free(context: Context, node: NativeNode) -> None:
    node.close()


def _prepare(context: Context, node: Node) -> None:
    node.user_data.prepare(context, node)


def _bind(context: Context, node: Node) -> Callable[[], None]:
    thunk: Callable[[], None] = node.user_data.bind(context, node)
    return thunk
