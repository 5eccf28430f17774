"""Per-node state that persists between invokes, and the block size of processing."""

from __future__ import annotations

from oplet import Allocation, Context, Node, Tensor, TensorType

__all__ = ["AT_ONCE", "add_state"]

#: Values that are worked on at once, where what is worked out in between is wider than they are.
AT_ONCE = 1 << 16


def add_state(context: Context, node: Node, shape: tuple[int, ...], type: TensorType) -> Tensor:
    """Add a persistent tensor to a node: zero at first and after `reset_all_variables()`.

    Every op must therefore treat zeros as its initial state.
    """
    state = context.add_temporary(node, shape, type, allocation=Allocation.PERSISTENT)
    state.is_variable = True
    return state
