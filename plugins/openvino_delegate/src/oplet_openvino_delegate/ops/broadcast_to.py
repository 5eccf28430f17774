"""BROADCAST_TO: a tensor repeated to a shape, by numpy's rules."""

from __future__ import annotations

import numpy as np
from openvino import opset13 as ov

from oplet import Node
from oplet_openvino_delegate.graph import GraphBuilder
from oplet_openvino_delegate.moving import refuses_rescaling
from oplet_openvino_delegate.translators import MOVED, Translator


def translate(graph: GraphBuilder, node: Node) -> None:
    """Add the OpenVINO nodes that compute the BROADCAST_TO node to the graph."""
    shape = graph.constant(np.array(node.outputs[0].shape, np.int64))
    graph.put(node.outputs[0], ov.broadcast(graph.value(node.inputs[0]), shape))


TRANSLATOR = Translator(3, translate, refuses_rescaling, inputs=(2, 2), types=MOVED, constants=(1,), layer_of_8_bits=True)
