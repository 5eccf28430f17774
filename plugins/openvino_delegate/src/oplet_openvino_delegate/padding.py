"""Shared parts of PAD, PADV2 and MIRROR_PAD."""

from __future__ import annotations

import numpy as np

from oplet import Node
from oplet_openvino_delegate.graph import GraphBuilder, Value
from oplet_openvino_delegate.moving import integers


def refuses_edges(node: Node) -> str:
    """Return why the widths of a padding operator's borders are not supported; "" if they are."""
    data, widths = node.inputs[:2]
    if widths.shape != (data.ndim, 2) or min(integers(widths), default=0) < 0:
        return f"{integers(widths)} are no widths of a border of {data}"
    return ""


def edges(graph: GraphBuilder, node: Node) -> tuple[bool, Value, Value, Value]:
    """Return the arguments of OpenVINO's padding node: whether NCHW is used, the value to pad, and the border widths per axis.

    The widths are two values: those at the beginning and those at the end of each axis.
    """
    data, widths = node.inputs[:2]
    planes = graph.in_planes([data])
    begin, end = integers(widths)[::2], integers(widths)[1::2]
    if planes:
        begin, end = ([numbers[axis] for axis in (0, 3, 1, 2)] for numbers in (begin, end))
    sides = (graph.constant(np.array(numbers, np.int64)) for numbers in (begin, end))
    return planes, graph.planes(data) if planes else graph.value(data), *sides
