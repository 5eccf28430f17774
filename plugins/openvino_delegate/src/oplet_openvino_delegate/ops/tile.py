"""TILE: a tensor repeated along its dimensions."""

from __future__ import annotations

import numpy as np
from openvino import opset13 as ov

from oplet import Node
from oplet_openvino_delegate.graph import GraphBuilder
from oplet_openvino_delegate.moving import integers, refuses_rescaling
from oplet_openvino_delegate.translators import MOVED, Translator


def refuses(node: Node) -> str:
    """Return why the delegate leaves the TILE node to other kernels; "" if it translates it."""
    data, times = node.inputs[0], integers(node.inputs[1])
    if len(times) != data.ndim or min(times, default=1) < 1:
        return f"{times} does not say how often to repeat {data}"
    return refuses_rescaling(node)


def translate(graph: GraphBuilder, node: Node) -> None:
    """Add the OpenVINO nodes that compute the TILE node to the graph."""
    times = graph.constant(np.array(integers(node.inputs[1]), np.int64))
    graph.put(node.outputs[0], ov.tile(graph.value(node.inputs[0]), times))


TRANSLATOR = Translator(3, translate, refuses, inputs=(2, 2), types=MOVED, constants=(1,), layer_of_8_bits=True)
