"""SLICE: a box out of a tensor."""

from __future__ import annotations

from oplet import Node
from oplet_openvino_delegate.graph import GraphBuilder
from oplet_openvino_delegate.moving import cut, integers, refuses_rescaling
from oplet_openvino_delegate.translators import MOVED, Translator


def refuses(node: Node) -> str:
    """Return why the delegate leaves the SLICE node to other kernels; "" if it translates it."""
    (data, begin), out = node.inputs[:2], node.outputs[0]
    starts = integers(begin)
    inside = len(starts) == data.ndim == out.ndim and all(
        start >= 0 and start + size <= length for start, size, length in zip(starts, out.shape, data.shape)
    )
    return refuses_rescaling(node) if inside else f"it does not begin inside {data}, at {starts}"


def translate(graph: GraphBuilder, node: Node) -> None:
    """Add the OpenVINO nodes that compute the SLICE node to the graph."""
    out, starts = node.outputs[0], integers(node.inputs[1])
    cut(graph, node.inputs[0], out, [slice(start, start + size, 1) for start, size in zip(starts, out.shape)])


TRANSLATOR = Translator(6, translate, refuses, inputs=(3, 3), types=MOVED, constants=(1, 2), layer_of_8_bits=True)
