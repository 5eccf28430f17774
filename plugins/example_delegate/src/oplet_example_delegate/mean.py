"""MEAN version 1 on float32."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oplet import Node
from oplet.schema.options import ReducerOptions


def refuses(node: Node) -> str:
    """Why the node cannot be run here; "" if it can."""
    if len(node.inputs) != 2 or not node.inputs[1].is_constant:
        return "its axes are not constant"
    rank = node.inputs[0].ndim
    axes = node.inputs[1].data.ravel().tolist()
    return "" if all(-rank <= axis < rank for axis in axes) else f"its axes {axes} are not those of {rank} dimensions"


def _axes(node: Node) -> tuple[int, ...]:
    rank = node.inputs[0].ndim
    return tuple(sorted({axis % rank for axis in node.inputs[1].data.ravel().tolist()}))


def output_shape(node: Node) -> tuple[int, ...]:
    """The input's shape without the axes, or with ones in their place."""
    keep, axes = node.options(ReducerOptions).keep_dims, _axes(node)
    shape = node.inputs[0].shape
    return tuple(1 if axis in axes else size for axis, size in enumerate(shape) if keep or axis not in axes)


def bind(node: Node) -> Callable[[], None]:
    """The function that computes the output from the input's present values."""
    data, out, axes = node.inputs[0].data, node.outputs[0].data, _axes(node)
    keep = node.options(ReducerOptions).keep_dims

    def run() -> None:
        np.mean(data, axis=axes, keepdims=keep, out=out)

    return run
