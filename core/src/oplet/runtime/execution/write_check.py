"""The write check: after each node, see whether its kernel wrote only what is its own.

A kernel may write into its outputs, its temporaries and variables, and nothing else. That costs a copy of every input at every
run, so that it is asked for: `Interpreter(..., checks=True)`.
"""

from __future__ import annotations

import numpy as np

from oplet.errors import PluginError
from oplet.ops.context import Node
from oplet.ops.registration import Thunk
from oplet.ops.tensor import Array, Tensor

__all__ = ["with_write_check"]


def with_write_check(node: Node, thunk: Thunk) -> Thunk:
    """The thunk, followed by a look at what it wrote.

    Args:
        node: the node that it runs.
        thunk: what `bind` returned.
    """

    def run() -> None:
        lists = list(node.inputs), list(node.outputs)
        mine = {t for t in node.inputs if t is not None and (t.is_variable or t in node.outputs or node.writes_over(t))}
        read_only = [t for t in node.inputs if t is not None and t not in mine and t.has_data]
        before = [(tensor, tensor.data, tensor.shape, _value(tensor)) for tensor in read_only]
        arrays = [(tensor, tensor.data) for tensor in node.outputs if not tensor.is_dynamic and tensor.has_data]
        thunk()
        if (node.inputs, node.outputs) != lists:
            node.inputs, node.outputs = lists
            raise PluginError("The kernel changes the list of its node's tensors; they are the graph's")
        for tensor, array, shape, value in before:
            if tensor.shape != shape or tensor.data is not array or not _same(_value(tensor), value):
                raise PluginError(f"The kernel changes its input {tensor}, which others read too")
        for tensor, array in arrays:
            if tensor.data is not array and not tensor.resized:
                raise PluginError(f"The kernel replaces the array of its output {tensor}")
        for tensor in node.outputs:
            if tensor.has_data and (tensor.data.shape != tensor.shape or tensor.data.dtype != tensor.dtype):
                raise PluginError(f"The kernel leaves an array of {tensor.data.dtype} {list(tensor.data.shape)} in {tensor}")

    return run


def _value(tensor: Tensor) -> Array:
    return np.array(tensor.data)


def _same(one: Array, other: Array) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.dtype.hasobject:
        return all(a is b or a == b for a, b in zip(one.ravel().tolist(), other.ravel().tolist()))
    return one.tobytes() == other.tobytes()
