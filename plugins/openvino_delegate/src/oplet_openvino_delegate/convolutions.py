"""What CONV_2D, DEPTHWISE_CONV_2D and TRANSPOSE_CONV have in common."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from openvino import opset13 as ov

from oplet import Tensor
from oplet_openvino_delegate.graph import GraphBuilder, Value


def refuses_filter(data: Tensor, weights: Tensor, bias: Tensor | None, filters: int) -> str:
    """Why image, filter and bias do not go together here."""
    if data.ndim != 4 or weights.ndim != 4:
        return f"it wants four dimensions, not {data} and {weights}"
    if bias is not None and (not bias.is_constant or bias.size != filters):
        return f"{bias} is no constant bias of {filters} filters"
    return ""


def with_bias(graph: GraphBuilder, value: Value, bias: Tensor | None) -> Value:
    """Add a bias along the channels, which are in second place."""
    if bias is None:
        return value
    return ov.add(value, graph.constant(bias.data.reshape((1, -1, 1, 1))))


def ordered(graph: GraphBuilder, weights: Tensor, order: Sequence[int]) -> Value:
    """A filter with its dimensions in another order; a constant one is put so here."""
    if weights.is_constant:
        return graph.constant(weights.data.transpose(order), np.float32)
    return graph.transposed(graph.value(weights), order)
