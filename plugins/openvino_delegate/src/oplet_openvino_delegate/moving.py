"""Shared parts of operators that only move values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from openvino import opset13 as ov

from oplet import Node, Tensor, TensorType
from oplet_openvino_delegate.graph import IN_PLANES, GraphBuilder
from oplet_openvino_delegate.translators import MOVED, Translator

QUANTIZED = (TensorType.INT8, TensorType.UINT8)


def refuses_rescaling(node: Node, inputs: Sequence[Tensor] | None = None) -> str:
    """Return why an operator cannot just move values: an output has another type or quantization than an input; "" if it can.

    Args:
        node: the node.
        inputs: the inputs whose values are moved; None for the first one only.
    """
    for tensor in inputs if inputs is not None else node.inputs[:1]:
        for out in node.outputs:
            if tensor.type is not out.type:
                return f"it is to make {out} of {tensor}"
            if tensor.type in QUANTIZED and (tensor.scale, tensor.zero_point) != (out.scale, out.zero_point):
                return f"{tensor} and {out} have different scales"
    return ""


def integers(tensor: Tensor) -> list[int]:
    """Return the values of a constant integer tensor, such as axes, as a list."""
    values: list[int] = tensor.data.ravel().tolist()
    return values


def axes_of(axes: Sequence[int], rank: int) -> list[int] | None:
    """Return the axes with negative ones counted from the end; None if one is out of range."""
    return [axis % rank for axis in axes] if all(-rank <= axis < rank for axis in axes) else None


def reshaping(*, newest: int, inputs: tuple[int, int] = (1, 1), constants: tuple[int, ...] = ()) -> Translator:
    """Build the translator of an operator that only changes the shape, such as RESHAPE or SQUEEZE.

    The arguments are attributes of `Translator`: the newest version, the least and the most number of inputs, and the positions
    of those that must be constant.
    """

    def refuses(node: Node) -> str:
        data, out = node.inputs[0], node.outputs[0]
        return refuses_rescaling(node) if data.size == out.size else f"{data} does not become {out}"

    def translate(graph: GraphBuilder, node: Node) -> None:
        out = node.outputs[0]
        graph.put(out, graph.reshaped(graph.flat(node.inputs[0]), out.shape))

    return Translator(newest, translate, refuses, inputs=inputs, types=MOVED, constants=constants, layer_of_8_bits=True)


def splitting(*, data: int, axis: int, newest: int, inputs: int) -> Translator:
    """Build the translator of an operator that splits a tensor into its outputs.

    Args:
        data: the position of the input that is split.
        axis: the position of the input that holds the axis.
    """

    def refuses(node: Node) -> str:
        cut_up, along = node.inputs[data], node.inputs[axis]
        axes = axes_of(integers(along), cut_up.ndim) if along.size == 1 else None
        if not axes or any(out.ndim != cut_up.ndim for out in node.outputs):
            return f"{along} is no axis of {cut_up}"
        if sum(out.shape[axes[0]] for out in node.outputs) != cut_up.shape[axes[0]]:
            return f"its outputs are not what {cut_up} consists of"
        return refuses_rescaling(node, [cut_up])

    def translate(graph: GraphBuilder, node: Node) -> None:
        cut_up = node.inputs[data]
        at = integers(node.inputs[axis])[0] % cut_up.ndim
        planes = graph.in_planes([cut_up])
        sizes = graph.constant(np.array([out.shape[at] for out in node.outputs], np.int64))
        along = graph.constant(np.int64(IN_PLANES[at] if planes else at))
        pieces = ov.variadic_split(graph.planes(cut_up) if planes else graph.value(cut_up), along, sizes)
        for position, out in enumerate(node.outputs):
            graph.put_as(planes, out, pieces.output(position))

    constants = tuple(position for position in range(inputs) if position != data)
    return Translator(
        newest, translate, refuses, inputs=(inputs, inputs), outputs=None, types=MOVED, constants=constants, layer_of_8_bits=True
    )


def cut(graph: GraphBuilder, data: Tensor, out: Tensor, parts: Sequence[slice]) -> None:
    """Add a strided slice of `data`, by one slice per dimension, as the value of `out`, which may lack dimensions of size 1."""
    if not parts:
        graph.put(out, graph.reshaped(graph.value(data), out.shape))
        return
    # Behind the first element is what OpenVINO calls far before it.
    begin, end, step = ([getattr(part, name) for part in parts] for name in ("start", "stop", "step"))
    end = [-(2**31) if stop is None or stop < 0 else stop for stop in end]
    planes = graph.in_planes([data]) and out.ndim == 4
    axes = [IN_PLANES[axis] if planes else axis for axis in range(len(parts))]
    numbers = (graph.constant(np.array(values, np.int64)) for values in (begin, end, step, axes))
    made = ov.slice(graph.planes(data) if planes else graph.value(data), *numbers)
    if planes:
        graph.put_planes(out, made)
    else:
        graph.put(out, graph.reshaped(made.output(0), out.shape))
