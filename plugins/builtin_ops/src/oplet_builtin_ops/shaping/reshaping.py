"""What RESHAPE, EXPAND_DIMS and SQUEEZE share: the same values in an output of another shape."""

from __future__ import annotations

from oplet import Node
from oplet.kernels.arrays import Thunk, copier

__all__ = ["bind_reshaped"]


def bind_reshaped(node: Node) -> Thunk:
    """A thunk that copies the first input's values, in order, into the output, which has as many."""
    output = node.outputs[0].data
    return copier(output, node.inputs[0].data.reshape(output.shape))
