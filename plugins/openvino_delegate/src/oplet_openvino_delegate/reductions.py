"""Translators of reductions along constant axes, from .tflite models to OpenVINO's graphs."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

from oplet import Node, TensorType
from oplet.schema.options import ReducerOptions
from oplet_openvino_delegate.graph import IN_PLANES, GraphBuilder, Value
from oplet_openvino_delegate.moving import axes_of, integers
from oplet_openvino_delegate.translators import FLOAT, Translator


def reduction(
    make: Callable[[Value, Value, bool], Value],
    *,
    newest: int = 2,
    types: Collection[TensorType] = FLOAT,
    layer_of_8_bits: bool = False,
) -> Translator:
    """Build the translator of a reduction along the axes in its second input.

    Args:
        make: creates the OpenVINO node from the value, the axes, and whether reduced axes are kept with size 1.
        newest, types, layer_of_8_bits: attributes of `Translator`: the newest version, the allowed types, whether quantized
            nodes are taken.
    """

    def refuses(node: Node) -> str:
        data, axes = node.inputs
        if not data.ndim:
            return "there is nothing to reduce in a scalar"
        return "" if axes_of(integers(axes), data.ndim) is not None else f"the axes {integers(axes)} are not all in {data}"

    def translate(graph: GraphBuilder, node: Node) -> None:
        data, out = node.inputs[0], node.outputs[0]
        axes = sorted(set(axes_of(integers(node.inputs[1]), data.ndim) or []))
        keep = node.options(ReducerOptions).keep_dims
        planes = graph.in_planes([data]) and (keep or {1, 2} <= set(axes))
        if not axes:
            graph.put(out, graph.reshaped(graph.value(data), out.shape))
            return
        if planes:
            at = [IN_PLANES[axis] for axis in axes]
            made = make(graph.planes(data), graph.constant(np.array(at, np.int64)), True)
            if keep:
                graph.put_planes(out, made)
            else:  # rows and columns are 1 now: what is left needs no transpose
                graph.put(out, graph.reshaped(made.output(0), out.shape))
            return
        graph.put(out, make(graph.value(data), graph.constant(np.array(axes, np.int64)), keep))

    return Translator(newest, translate, refuses, inputs=(2, 2), types=types, constants=(1,), layer_of_8_bits=layer_of_8_bits)
