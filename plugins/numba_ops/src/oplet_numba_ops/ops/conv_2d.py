"""CONV_2D, compiled."""

from __future__ import annotations

from oplet import Context, Node
from oplet_builtin_ops.ops.conv_2d import REGISTRATION as BUILTIN
from oplet_numba_ops.overriding import Bind, override


def plan(context: Context, node: Node) -> Bind | None:
    return None


REGISTRATION = override(BUILTIN, plan)
