"""QUANTIZE of float32 to int8 and uint8: value / scale, rounded half away from 0, plus the zero point."""

from __future__ import annotations

import numpy as np
from openvino import opset13 as ov

from oplet import Node, TensorType
from oplet_openvino_delegate.graph import GraphBuilder
from oplet_openvino_delegate.translators import Translator


def refuses(node: Node) -> str:
    """Why the node is not claimed; "" if it is."""
    data, out = node.inputs[0], node.outputs[0]
    if data.type is not TensorType.FLOAT32 or out.type is TensorType.FLOAT32:
        return f"it is to make {out} of {data}"
    if out.quantization is None or out.quantization.per_channel or not 0 < out.scale < np.inf:
        return f"{out} has not one scale"
    return ""


def translate(graph: GraphBuilder, node: Node) -> None:
    """The operator in OpenVINO."""
    data, out = node.inputs[0], node.outputs[0]
    planes = graph.in_planes([data])
    value = graph.planes(data) if planes else graph.value(data)
    steps = ov.divide(value, graph.constant(np.float32(out.scale)))
    shifted = ov.add(ov.round(steps, "half_away_from_zero"), graph.constant(np.float32(out.zero_point)))
    limits = np.iinfo(out.dtype)
    clamped = ov.clamp(shifted, float(limits.min), float(limits.max))
    # Of NaN, x86 makes the lowest integer of 32 bits, from which a zero point below 0 leads round to the highest.
    of_nan = graph.constant(np.float32(limits.max if out.zero_point < 0 else limits.min))
    clamped = ov.select(ov.equal(value, value), clamped, of_nan)
    graph.put_as(planes, out, ov.convert(clamped, "i8" if out.type is TensorType.INT8 else "u8"))


TRANSLATOR = Translator(3, translate, refuses, types=(TensorType.FLOAT32, TensorType.INT8, TensorType.UINT8))
