"""Translators of 2D pools, from .tflite models to OpenVINO's graphs."""

from __future__ import annotations

from collections.abc import Callable

from oplet import Node
from oplet.schema.options import Pool2DOptions
from oplet_openvino_delegate.activations import activated, refuses_activation
from oplet_openvino_delegate.graph import GraphBuilder, Value
from oplet_openvino_delegate.moving import refuses_rescaling
from oplet_openvino_delegate.translators import Translator
from oplet_openvino_delegate.windows import padding_of, refuses_window

#: Makes a pool of an image, strides, padding before and behind, and the window's size.
Pool = Callable[[Value, list[int], list[int], list[int], list[int]], Value]


def pooling(make: Pool, newest: int, *, layer_of_8_bits: bool = False) -> Translator:
    """Build the translator of a 2D pooling operator up to version `newest`; `layer_of_8_bits`: also of quantized ones."""

    def refuses(node: Node) -> str:
        options = node.options(Pool2DOptions)
        if node.inputs[0].ndim != 4:
            return f"it wants four dimensions, not {node.inputs[0]}"
        numbers = (options.stride_h, options.stride_w, options.filter_height, options.filter_width)
        reason = refuses_window(options.padding, *numbers) or refuses_activation(options.fused_activation_function)
        return reason or refuses_rescaling(node)

    def translate(graph: GraphBuilder, node: Node) -> None:
        options = node.options(Pool2DOptions)
        strides, taps = [options.stride_h, options.stride_w], [options.filter_height, options.filter_width]
        begin, end = padding_of(options.padding, node.inputs[0].shape[1:3], taps, strides)
        made = make(graph.planes(node.inputs[0]), strides, begin, end, taps)
        graph.put_planes(node.outputs[0], activated(made, options.fused_activation_function))

    return Translator(newest, translate, refuses, layer_of_8_bits=layer_of_8_bits)
