"""GATHER with constant indices; nodes with run-time indices are left to other kernels, which check them."""

from __future__ import annotations

import numpy as np
from openvino import opset13 as ov

from oplet import Node
from oplet.schema.options import GatherOptions
from oplet_openvino_delegate.graph import GraphBuilder
from oplet_openvino_delegate.moving import axes_of, refuses_rescaling
from oplet_openvino_delegate.translators import MOVED, Translator


def refuses(node: Node) -> str:
    """Return why the delegate leaves the GATHER node to other kernels; "" if it translates it."""
    options, (data, positions) = node.options(GatherOptions), node.inputs
    axes = axes_of([options.axis], data.ndim)
    if not axes or options.batch_dims:
        return f"its axis {options.axis} is not in {data}, or it has {options.batch_dims} batch dimensions"
    if not positions.size or positions.data.min() < 0 or positions.data.max() >= data.shape[axes[0]]:
        return f"not all of its positions are in {data}"
    return refuses_rescaling(node)


def translate(graph: GraphBuilder, node: Node) -> None:
    """Add the OpenVINO nodes that compute the GATHER node to the graph."""
    data, positions = node.inputs
    axis = graph.constant(np.int64(node.options(GatherOptions).axis % data.ndim))
    graph.put(node.outputs[0], ov.gather(graph.value(data), graph.constant(positions.data, np.int32), axis))


TRANSLATOR = Translator(4, translate, refuses, inputs=(2, 2), types=MOVED, constants=(1,), layer_of_8_bits=True)
