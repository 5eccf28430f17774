"""BATCH_TO_SPACE_ND and SPACE_TO_BATCH_ND: moving spatial blocks between image and batch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oplet import Node
from oplet_openvino_delegate.graph import GraphBuilder, Value
from oplet_openvino_delegate.moving import integers
from oplet_openvino_delegate.translators import Translator

__all__ = ["block_translator"]


def block_translator(make: Callable[..., Value], edges_are: str) -> Translator:
    """Build the translator of BATCH_TO_SPACE_ND or SPACE_TO_BATCH_ND.

    Args:
        make: creates the OpenVINO node, which needs a block size for every dimension.
        edges_are: the name of the third input in messages: "paddings" or "crops".
    """

    def refuses(node: Node) -> str:
        data, sizes, edges = node.inputs
        count = sizes.size
        if data.ndim != 4 or not 1 <= count <= 2 or edges.size != 2 * count:
            return f"it wants four dimensions and blocks of one or two, not {data}, {sizes} and {edges}"
        if min(integers(sizes)) < 1 or min(integers(edges)) < 0:
            return f"its blocks are {integers(sizes)}, its {edges_are} {integers(edges)}"
        return ""

    def translate(graph: GraphBuilder, node: Node) -> None:
        data, sizes, edges = node.inputs
        rest = [0] * (data.ndim - 1 - sizes.size)
        blocks = [1, *integers(sizes), *(1 for _ in rest)]
        begin, end = ([0, *integers(edges)[side::2], *rest] for side in (0, 1))
        numbers = (graph.constant(np.array(each, np.int64)) for each in (blocks, begin, end))
        graph.put(node.outputs[0], make(graph.value(data), *numbers))

    return Translator(4, translate, refuses, inputs=(3, 3), constants=(1, 2))
