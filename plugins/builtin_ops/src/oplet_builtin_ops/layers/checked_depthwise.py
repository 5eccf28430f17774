"""What DEPTHWISE_CONV_2D checks before it plans how to compute: types, shapes and quantization; compiled kernels begin there, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oplet import Context, Node, TensorType, ensure, ensure_type
from oplet.kernels.operands import ensure_operands, ensure_same_type
from oplet.kernels.requantization import Rounding
from oplet.kernels.windows import Windows2D, window_axis
from oplet.schema.options import DepthwiseConv2DOptions
from oplet_builtin_ops.layers.checked_convolution import SOURCES, Convolution
from oplet_builtin_ops.layers.quantized_layer import QuantizedLayer, convolution_layer
from oplet_builtin_ops.layers.weights import ensure_bias

if TYPE_CHECKING:
    from oplet_builtin_ops.layers.hybrid_layer import HybridLayer

__all__ = ["CHANNELS", "check_depthwise"]

#: The axis of the filters along which output channels are.
CHANNELS = 3


def check_depthwise(context: Context, node: Node) -> Convolution:
    """Check a DEPTHWISE_CONV_2D and set its output's shape, with a group for each channel; the windows have as many channels as the
    output.

    Raises:
        EnsureError: it cannot be computed.
    """
    ensure_operands(node, 2, optional=1)
    source, weights = node.inputs[:2]
    output = node.outputs[0]
    options = node.options(DepthwiseConv2DOptions)
    ensure_type(source, *SOURCES)
    ensure_same_type(source, output)
    ensure(source.ndim == 4, lambda: f"{source} must have 4 dimensions.")
    fits = weights.ndim == 4 and weights.shape[0] == 1
    ensure(fits, lambda: f"the filters {weights} must have shape [1, height, width, channels].")
    _, rows, columns, filters = weights.shape
    channels = source.shape[3]
    ensure(
        channels > 0 and filters > 0 and filters % channels == 0,
        lambda: f"{weights} has {filters} filters, which is no multiple of the {channels} channels of {source}.",
    )
    height = window_axis("h", options.padding, source.shape[1], rows, options.stride_h, options.dilation_h_factor)
    width = window_axis("w", options.padding, source.shape[2], columns, options.stride_w, options.dilation_w_factor)
    context.resize_tensor(output, (source.shape[0], height.out, width.out, filters))
    layer = _layer(node, filters, options)
    return Convolution(Windows2D(source.shape[0], height, width, filters), channels, filters, layer)


def _layer(node: Node, filters: int, options: DepthwiseConv2DOptions) -> QuantizedLayer | HybridLayer | None:
    """Check types and quantization; return the plan of a layer with integer weights, None for float weights."""
    source, weights = node.inputs[:2]
    bias, activation = node.optional_input(2), options.fused_activation_function
    if source.type == TensorType.FLOAT32:
        ensure_type(weights, TensorType.FLOAT32, TensorType.INT8)
        ensure_bias(bias, filters, TensorType.FLOAT32)
        if weights.type == TensorType.FLOAT32:
            return None
        from oplet_builtin_ops.layers.hybrid_layer import HybridLayer  # here, as many models have no such layers

        return HybridLayer(node, source, weights, bias, CHANNELS, True, activation, source.shape[0])
    # The converter writes int16 filters if the model computes them.
    types = TensorType.INT8, TensorType.INT4, *([source.type] if source.type == TensorType.INT16 else [])
    # Only LiteRT's optimized kernel supports 4-bit weights.
    rounding = Rounding.UP if weights.type == TensorType.INT4 and source.type == TensorType.INT8 else None
    return convolution_layer(node, source, weights, bias, activation, *types, axis=CHANNELS, rounding=rounding)
