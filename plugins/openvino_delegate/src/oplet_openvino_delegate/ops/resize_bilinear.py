"""RESIZE_BILINEAR on float32."""

from __future__ import annotations

import numpy as np
from openvino import opset11 as ov

from oplet import Node
from oplet.schema.options import ResizeBilinearOptions
from oplet_openvino_delegate.graph import GraphBuilder
from oplet_openvino_delegate.translators import Translator


def refuses(node: Node) -> str:
    """Return why the delegate leaves the RESIZE_BILINEAR node to other kernels; "" if it translates it."""
    options = node.options(ResizeBilinearOptions)
    if node.inputs[0].ndim != 4:
        return f"it wants four dimensions, not {node.inputs[0]}"
    return "it has both align_corners and half_pixel_centers" if options.align_corners and options.half_pixel_centers else ""


def translate(graph: GraphBuilder, node: Node) -> None:
    """Add the OpenVINO nodes that compute the RESIZE_BILINEAR node to the graph."""
    options, out = node.options(ResizeBilinearOptions), node.outputs[0]
    mode = "align_corners" if options.align_corners else "half_pixel" if options.half_pixel_centers else "asymmetric"
    made = ov.interpolate(
        graph.planes(node.inputs[0]),
        graph.constant(np.array(out.shape[1:3], np.int32)),
        "linear_onnx",
        "sizes",
        coordinate_transformation_mode=mode,
        axes=graph.constant(np.array([2, 3], np.int32)),
    )
    graph.put_planes(out, made)


TRANSLATOR = Translator(3, translate, refuses, inputs=(2, 2), constants=(1,), layer_of_8_bits=True)
