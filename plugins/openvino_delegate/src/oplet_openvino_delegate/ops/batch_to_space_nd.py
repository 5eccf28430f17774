"""BATCH_TO_SPACE_ND."""

from __future__ import annotations

import numpy as np
from openvino import opset13 as ov

from oplet import Node
from oplet_openvino_delegate.graph import GraphBuilder
from oplet_openvino_delegate.moving import integers
from oplet_openvino_delegate.translators import Translator


def refuses(node: Node) -> str:
    """Why the node is not claimed; "" if it is."""
    data, sizes, edges = node.inputs
    count = sizes.size
    if data.ndim != 4 or not 1 <= count <= 2 or edges.size != 2 * count:
        return f"it wants four dimensions and blocks of one or two, not {data}, {sizes} and {edges}"
    if min(integers(sizes)) < 1 or min(integers(edges)) < 0:
        return f"its blocks are {integers(sizes)}, its crops {integers(edges)}"
    return ""


def translate(graph: GraphBuilder, node: Node) -> None:
    """The operator in OpenVINO, which wants a block size for every dimension."""
    data, sizes, edges = node.inputs
    rest = [0] * (data.ndim - 1 - sizes.size)
    blocks = [1, *integers(sizes), *(1 for _ in rest)]
    begin, end = ([0, *integers(edges)[side::2], *rest] for side in (0, 1))
    made = ov.batch_to_space(
        graph.value(data), *(graph.constant(np.array(numbers, np.int64)) for numbers in (blocks, begin, end))
    )
    graph.put(node.outputs[0], made)


TRANSLATOR = Translator(4, translate, refuses, inputs=(3, 3), constants=(1, 2))
