"""UNPACK: the slices of a tensor along one dimension."""

from __future__ import annotations

import numpy as np
from openvino import opset13 as ov

from oplet import Node
from oplet.schema.options import UnpackOptions
from oplet_openvino_delegate.graph import GraphBuilder
from oplet_openvino_delegate.moving import axes_of, refuses_rescaling
from oplet_openvino_delegate.translators import MOVED, Translator


def refuses(node: Node) -> str:
    """Return why the delegate leaves the UNPACK node to other kernels; "" if it translates it."""
    axis, data = node.options(UnpackOptions).axis, node.inputs[0]
    axes = axes_of([axis], data.ndim)
    if not axes or data.shape[axes[0]] != len(node.outputs):
        return f"its axis {axis} does not cut {data} into {len(node.outputs)} pieces"
    return refuses_rescaling(node)


def translate(graph: GraphBuilder, node: Node) -> None:
    """Add the OpenVINO nodes that compute the UNPACK node to the graph."""
    data = node.inputs[0]
    axis = graph.constant(np.int64(node.options(UnpackOptions).axis % data.ndim))
    pieces = ov.split(graph.value(data), axis, len(node.outputs))
    for position, out in enumerate(node.outputs):
        graph.put(out, graph.reshaped(pieces.output(position), out.shape))


TRANSLATOR = Translator(4, translate, refuses, outputs=None, types=MOVED, layer_of_8_bits=True)
