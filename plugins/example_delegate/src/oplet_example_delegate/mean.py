"""MEAN version 1 on float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet import Node
from oplet.schema.options import ReducerOptions


def refuses(node: Node) -> str:
    """Return why the delegate cannot run a MEAN node; "" if it can."""
    if len(node.inputs) != 2 or not node.has_input(1) or not node.inputs[1].is_constant:
        return "its axes are not constant"
    data = node.inputs[0]
    axes = node.inputs[1].data.ravel().tolist()
    if not all(-data.ndim <= axis < data.ndim for axis in axes):
        return f"its axes {axes} are not those of {data.ndim} dimensions"
    return "" if data.size else f"there is no mean of nothing: the shape is {list(data.shape)}"


def _axes(node: Node) -> tuple[int, ...]:
    rank = node.inputs[0].ndim
    return tuple(sorted({axis % rank for axis in node.inputs[1].data.ravel().tolist()}))


def output_shape(node: Node) -> tuple[int, ...]:
    """Return the input's shape without the reduced axes, or with ones in their place."""
    keep, axes = node.options(ReducerOptions).keep_dims, _axes(node)
    shape = node.inputs[0].shape
    return tuple(1 if axis in axes else size for axis, size in enumerate(shape) if keep or axis not in axes)


def bind(node: Node, data: NDArray[Any], out: NDArray[Any]) -> Callable[[], None]:
    """Return a function that computes `out` from the values that `data` has at the call."""
    axes, keep = _axes(node), node.options(ReducerOptions).keep_dims

    def run() -> None:
        np.mean(data, axis=axes, keepdims=keep, out=out)

    return run
