"""RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from openvino import opset11 as ov

from oplet import Node
from oplet.schema.options import ResizeBilinearOptions, ResizeNearestNeighborOptions
from oplet_openvino_delegate.graph import GraphBuilder, Value
from oplet_openvino_delegate.translators import translates

__all__: list[str] = []

#: Rows or columns up to which positions are looked up.
_LONGEST = 1 << 16


def _interpolate(graph: GraphBuilder, node: Node, mode: str, coordinates: str, rounding: str = "round_prefer_floor") -> Value:
    """Add OpenVINO's resize of rows and columns, with how it computes positions and rounds them; return its value."""
    return ov.interpolate(
        graph.planes(node.inputs[0]),
        graph.constant(np.array(node.outputs[0].shape[1:3], np.int32)),
        mode,
        "sizes",
        coordinate_transformation_mode=coordinates,
        nearest_mode=rounding,
        axes=graph.constant(np.array([2, 3], np.int32)),
    )


def _refuses_bilinear(node: Node) -> str:
    options = node.options(ResizeBilinearOptions)
    if node.inputs[0].ndim != 4:
        return f"it wants four dimensions, not {node.inputs[0]}"
    return "it has both align_corners and half_pixel_centers" if options.align_corners and options.half_pixel_centers else ""


@translates("RESIZE_BILINEAR", newest=3, refuses=_refuses_bilinear, inputs=(2, 2), constants=(1,), layer_of_8_bits=True)
def _resize_bilinear(graph: GraphBuilder, node: Node) -> None:
    options = node.options(ResizeBilinearOptions)
    coordinates = "align_corners" if options.align_corners else "half_pixel" if options.half_pixel_centers else "asymmetric"
    graph.put_planes(node.outputs[0], _interpolate(graph, node, "linear_onnx", coordinates))


def _refuses_nearest(node: Node) -> str:
    if node.inputs[0].ndim != 4:
        return f"it wants four dimensions, not {node.inputs[0]}"
    return "" if max(node.outputs[0].shape) <= _LONGEST else f"{node.outputs[0]} is too large"


def _positions(node: Node, axis: int) -> NDArray[np.int64]:
    """Return the row or column of the input that each of the output is a copy of, by LiteRT's float32 arithmetic."""
    options = node.options(ResizeNearestNeighborOptions)
    size, wanted = node.inputs[0].shape[axis], node.outputs[0].shape[axis]
    corners = options.align_corners and wanted > 1
    scale = np.float32(size - 1) / np.float32(wanted - 1) if corners else np.float32(size) / np.float32(wanted)
    real = (np.arange(wanted, dtype=np.float32) + np.float32(0.5 if options.half_pixel_centers else 0)) * scale
    whole = np.floor(real.astype(np.float64) + 0.5) if options.align_corners else np.floor(real)
    found: NDArray[np.int64] = np.clip(whole.astype(np.int64), 0, size - 1)
    return found


@translates("RESIZE_NEAREST_NEIGHBOR", newest=3, refuses=_refuses_nearest, inputs=(2, 2), constants=(1,), layer_of_8_bits=True)
def _resize_nearest_neighbor(graph: GraphBuilder, node: Node) -> None:
    """Translate to a resize for whole factors, else to gathers of rows and columns."""
    data, out = node.inputs[0], node.outputs[0]
    positions = [_positions(node, axis) for axis in (1, 2)]
    sizes = list(zip(data.shape[1:3], out.shape[1:3], positions))
    if all(wanted % size == 0 and (at == np.arange(wanted) // (wanted // size)).all() for size, wanted, at in sizes):
        made = _interpolate(graph, node, "nearest", "asymmetric", "floor")
    else:
        rows, columns = (graph.constant(at.astype(np.int32)) for at in positions)
        made = ov.gather(graph.planes(data), rows, graph.constant(np.int32(2)))
        made = ov.gather(made, columns, graph.constant(np.int32(3)))
    graph.put_planes(out, made)
