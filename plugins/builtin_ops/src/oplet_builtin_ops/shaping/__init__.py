"""Shared parts of operators that move, gather, pad, resize and reduce.

`bind_reshaped` is what RESHAPE, EXPAND_DIMS and SQUEEZE share: the same values in another shape.
"""

from __future__ import annotations

from oplet import Node
from oplet.kernels.arrays import Thunk, copier

__all__ = ["bind_reshaped"]


def bind_reshaped(node: Node) -> Thunk:
    """Return a function that copies the first input's values, in order, into the output of another shape."""
    output = node.outputs[0].data
    return copier(output, node.inputs[0].data.reshape(output.shape))
