"""Operators along constant axes: reductions, ARG_MAX and ARG_MIN, CUMSUM."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from openvino import opset11
from openvino import opset13 as ov

from oplet import Node, TensorType
from oplet.schema.options import CumsumOptions, ReducerOptions
from oplet_openvino_delegate.graph import IN_PLANES, GraphBuilder, Value
from oplet_openvino_delegate.translators import axes_of, integers, translates

__all__: list[str] = []


def _refuses_axes(node: Node) -> str:
    data, axes = node.inputs
    if not data.ndim:
        return "there is nothing to reduce in a scalar"
    return "" if axes_of(integers(axes), data.ndim) is not None else f"the axes {integers(axes)} are not all in {data}"


def _reduction(name: str, make: Callable[[Value, Value, bool], Value], **attributes: Any) -> None:
    """Register a reduction along the axes in its second input.

    Args:
        name: the operator's name.
        make: creates the OpenVINO node from the value, the axes, and whether reduced axes are kept with size 1.
        attributes: attributes of `Translator`.
    """

    @translates(name, newest=2, refuses=_refuses_axes, inputs=(2, 2), constants=(1,), **attributes)
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


_reduction("MEAN", ov.reduce_mean, layer_of_8_bits=True)
_reduction("REDUCE_ALL", ov.reduce_logical_and, types=(TensorType.BOOL,))
_reduction("REDUCE_ANY", ov.reduce_logical_or, types=(TensorType.BOOL,))
_reduction("REDUCE_MAX", ov.reduce_max, layer_of_8_bits=True)
_reduction("REDUCE_MIN", ov.reduce_min, layer_of_8_bits=True)
_reduction("REDUCE_PROD", ov.reduce_prod)
_reduction("SUM", ov.reduce_sum, layer_of_8_bits=True)


def _refuses_axis(node: Node) -> str:
    data, axis = node.inputs
    return "" if axis.size == 1 and axes_of(integers(axis), data.ndim) else f"the axis {axis} is not in {data}"


def _refuses_search(node: Node) -> str:
    if node.inputs[0].type is not TensorType.FLOAT32 or node.outputs[0].type is not TensorType.INT32:
        return f"it is to find {node.outputs[0]} in {node.inputs[0]}"
    return _refuses_axis(node)


_FOUND = (TensorType.FLOAT32, TensorType.INT32)


@translates("ARG_MAX", "ARG_MIN", refuses=_refuses_search, inputs=(2, 2), types=_FOUND, constants=(1,))
def _search(graph: GraphBuilder, node: Node) -> None:
    data, out = node.inputs[0], node.outputs[0]
    axis, mode = integers(node.inputs[1])[0] % data.ndim, "max" if node.op_name == "ARG_MAX" else "min"
    found = opset11.topk(graph.value(data), graph.constant(np.int64(1)), axis, mode, "value", "i32", True)
    graph.put(out, graph.reshaped(found.output(1), out.shape))


@translates("CUMSUM", refuses=_refuses_axis, inputs=(2, 2), constants=(1,))
def _cumsum(graph: GraphBuilder, node: Node) -> None:
    options, data = node.options(CumsumOptions), node.inputs[0]
    axis = graph.constant(np.int64(integers(node.inputs[1])[0] % data.ndim))
    graph.put(node.outputs[0], ov.cum_sum(graph.value(data), axis, options.exclusive, options.reverse))
