"""Shared parts of operators with weights or sliding windows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oplet import Node

__all__ = ["MANY_TAPS", "remark"]

#: Windows of more taps along an axis than this, and than there are windows, are reduced one by one.
MANY_TAPS = 64


def remark(node: Node, default_delegates: bool) -> str:
    """Return whose numbers a layer has (`xnnpack_claims.remark`), whose module no run of a model needs."""
    from oplet_builtin_ops.layers import xnnpack_claims

    return xnnpack_claims.remark(node, default_delegates)
