"""RESIZE_NEAREST_NEIGHBOR: gathers at the positions of LiteRT's float32 arithmetic."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from openvino import opset11 as ov

from oplet import Node
from oplet.schema.options import ResizeNearestNeighborOptions
from oplet_openvino_delegate.graph import GraphBuilder
from oplet_openvino_delegate.translators import Translator

#: Rows or columns up to which positions are looked up.
_LONGEST = 1 << 16


def refuses(node: Node) -> str:
    """Return why the delegate leaves the RESIZE_NEAREST_NEIGHBOR node to other kernels; "" if it translates it."""
    if node.inputs[0].ndim != 4:
        return f"it wants four dimensions, not {node.inputs[0]}"
    return "" if max(node.outputs[0].shape) <= _LONGEST else f"{node.outputs[0]} is too large"


def _positions(node: Node, axis: int) -> NDArray[np.int64]:
    options = node.options(ResizeNearestNeighborOptions)
    size, wanted = node.inputs[0].shape[axis], node.outputs[0].shape[axis]
    corners = options.align_corners and wanted > 1
    scale = np.float32(size - 1) / np.float32(wanted - 1) if corners else np.float32(size) / np.float32(wanted)
    real = (np.arange(wanted, dtype=np.float32) + np.float32(0.5 if options.half_pixel_centers else 0)) * scale
    whole = np.floor(real.astype(np.float64) + 0.5) if options.align_corners else np.floor(real)
    found: NDArray[np.int64] = np.clip(whole.astype(np.int64), 0, size - 1)
    return found


def translate(graph: GraphBuilder, node: Node) -> None:
    """Add the nodes that compute RESIZE_NEAREST_NEIGHBOR to the graph: a resize for whole factors, else gathers of rows and
    columns.
    """
    data, out = node.inputs[0], node.outputs[0]
    value = graph.planes(data)
    positions = [_positions(node, axis) for axis in (1, 2)]
    sizes = list(zip(data.shape[1:3], out.shape[1:3], positions))
    if all(wanted % size == 0 and (at == np.arange(wanted) // (wanted // size)).all() for size, wanted, at in sizes):
        made = ov.interpolate(
            value,
            graph.constant(np.array(out.shape[1:3], np.int32)),
            "nearest",
            "sizes",
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
            axes=graph.constant(np.array([2, 3], np.int32)),
        )
    else:
        rows, columns = (graph.constant(at.astype(np.int32)) for at in positions)
        made = ov.gather(value, rows, graph.constant(np.int32(2)))
        made = ov.gather(made, columns, graph.constant(np.int32(3)))
    graph.put_planes(out, made)


TRANSLATOR = Translator(3, translate, refuses, inputs=(2, 2), constants=(1,), layer_of_8_bits=True)
