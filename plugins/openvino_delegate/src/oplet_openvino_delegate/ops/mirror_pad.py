"""MIRROR_PAD: a mirrored border, with the edge value (SYMMETRIC) or without it (REFLECT)."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet import Node
from oplet.schema.enums import MirrorPadMode
from oplet.schema.options import MirrorPadOptions
from oplet_openvino_delegate.graph import GraphBuilder
from oplet_openvino_delegate.moving import integers
from oplet_openvino_delegate.padding import edges, refuses_edges
from oplet_openvino_delegate.translators import Translator


def refuses(node: Node) -> str:
    """Return why the delegate leaves the MIRROR_PAD node to other kernels; "" if it translates it."""
    mode = node.options(MirrorPadOptions).mode
    if mode not in (MirrorPadMode.REFLECT, MirrorPadMode.SYMMETRIC):
        return f"it has no mode {mode!r}"
    reason = refuses_edges(node)
    if reason:
        return reason
    pads, shape = integers(node.inputs[1]), node.inputs[0].shape
    fits = all(pad <= shape[i // 2] - (mode is MirrorPadMode.REFLECT) for i, pad in enumerate(pads))
    return "" if fits else f"its border {pads} is wider than {node.inputs[0]}"


def translate(graph: GraphBuilder, node: Node) -> None:
    """Add the OpenVINO nodes that compute the MIRROR_PAD node to the graph."""
    planes, value, begin, end = edges(graph, node)
    mode = "reflect" if node.options(MirrorPadOptions).mode is MirrorPadMode.REFLECT else "symmetric"
    graph.put_as(planes, node.outputs[0], ov.pad(value, begin, end, mode))


TRANSLATOR = Translator(2, translate, refuses, inputs=(2, 2), constants=(1,), layer_of_8_bits=True)
