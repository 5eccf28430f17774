"""CONV_2D and DEPTHWISE_CONV_2D: windows over the height and width. CONV_2D multiplies each with every filter, in groups of channels if
filters have fewer channels; DEPTHWISE_CONV_2D convolves every input channel with its own filters, which with a single input channel
is an ordinary convolution.

Float, quantized (uint8, int8, int16 activations with int8 or int4 weights) and hybrid (float activations, integer weights). Here is
what they check before they plan how to compute: types, shapes and quantization; compiled kernels begin there, too.

Numerics: tflite/kernels/conv.cc, depthwise_conv.cc, tflite/kernels/internal/reference/conv.h, depthwiseconv_float.h,
depthwiseconv_uint8.h, integer_ops/conv.h and integer_ops/depthwise_conv.h
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands, ensure_same_type
from oplet.kernels.windows import Windows2D, window_axis
from oplet.records import Row
from oplet.schema.options import Conv2DOptions, DepthwiseConv2DOptions
from oplet_builtin_ops.arithmetic.single_precision import takes_halves
from oplet_builtin_ops.layers import remark
from oplet_builtin_ops.layers.weights import ensure_bias

if TYPE_CHECKING:
    from oplet_builtin_ops.layers.hybrid_layer import HybridLayer
    from oplet_builtin_ops.layers.quantized_layer import QuantizedLayer

__all__ = ["CONV_2D", "DEPTHWISE_CONV_2D", "Convolution", "check_convolution", "check_depthwise"]

#: The axis of DEPTHWISE_CONV_2D's filters along which output channels are.
_CHANNELS = 3
SOURCES = (TensorType.FLOAT32, TensorType.UINT8, TensorType.INT8, TensorType.INT16)
_HYBRID_WEIGHTS = (TensorType.INT8, TensorType.INT4, TensorType.INT2, TensorType.UINT8)


class Convolution(Row):
    """A checked convolution, whose output has its shape.

    Attributes:
        windows: the windows over the input.
        groups: the groups of channels, which are convolved separately.
        filters: output channels.
        layer: the numbers of a layer with integer weights; None where all are floats.
    """

    windows: Windows2D
    groups: int
    filters: int
    layer: QuantizedLayer | HybridLayer | None


def check_convolution(context: Context, node: Node) -> Convolution:
    """Check a CONV_2D and set its output's shape; raises EnsureError where it cannot be computed."""
    # The bias may be left out (-1), but its position must be there.
    ensure(len(node.inputs) == 3, f"the number of inputs is {len(node.inputs)}, it must be 3.")
    ensure_operands(node, 2, optional=1)
    source, weights = node.inputs[:2]
    output, options = node.outputs[0], node.options(Conv2DOptions)
    ensure_type(source, *SOURCES)
    ensure_same_type(source, output)
    ensure(source.ndim == 4, lambda: f"{source} must have 4 dimensions.")
    ensure(weights.ndim == 4, lambda: f"the filters {weights} must have 4 dimensions.")
    filters, rows, columns, depth = weights.shape
    channels = source.shape[3]
    ensure(filters > 0 and depth > 0, lambda: f"the filters {weights} must not be empty.")
    ensure(
        channels > 0 and channels % depth == 0,
        lambda: f"{source} has {channels} channels, which is no multiple of the {depth} that the filters {weights} take.",
    )
    groups = channels // depth
    ensure(filters % groups == 0, lambda: f"{weights} has {filters} filters, which cannot be split into {groups} groups.")
    windows = Windows2D(
        source.shape[0],
        window_axis("h", options.padding, source.shape[1], rows, options.stride_h, options.dilation_h_factor),
        window_axis("w", options.padding, source.shape[2], columns, options.stride_w, options.dilation_w_factor),
        channels,
    )
    context.resize_tensor(output, (source.shape[0], windows.height.out, windows.width.out, filters))
    if source.type != TensorType.FLOAT32:
        return Convolution(windows, groups, filters, _quantized(node, options))
    if weights.type == TensorType.FLOAT32:
        ensure_bias(node.optional_input(2), filters, TensorType.FLOAT32)
        return Convolution(windows, groups, filters, None)
    return Convolution(windows, groups, filters, _hybrid(context, node, windows, groups, options))


def _quantized(node: Node, options: Conv2DOptions) -> QuantizedLayer:
    from oplet_builtin_ops.layers.quantized_layer import convolution_layer, ensure_symmetric  # here, as float layers need none

    source, weights = node.inputs[:2]
    if source.type != TensorType.UINT8:
        ensure_symmetric(weights)
    # The converter writes int16 filters if the model computes them.
    types = TensorType.INT8, TensorType.INT4, *([source.type] if source.type == TensorType.INT16 else [])
    return convolution_layer(node, source, weights, node.optional_input(2), options.fused_activation_function, *types)


def _hybrid(context: Context, node: Node, windows: Windows2D, groups: int, options: Conv2DOptions) -> HybridLayer:
    # Imported here, as many models have no such layers.
    from oplet_builtin_ops.layers.hybrid_layer import HybridLayer
    from oplet_builtin_ops.layers.xnnpack_claims import follows_claim

    source, weights = node.inputs[:2]
    bias = node.optional_input(2)
    filters = weights.shape[0]
    ensure_type(weights, TensorType.FLOAT32, *_HYBRID_WEIGHTS)
    ensure_bias(bias, filters, TensorType.FLOAT32)
    # LiteRT gives the activations a zero point only if each channel has its own scale.
    scales = weights.quantization.scales if weights.quantization is not None else np.empty(0)
    per_channel = weights.type != TensorType.UINT8 and bool((scales != scales[:1]).any())
    even, batches = follows_claim(context, node), source.shape[0]
    if even and groups == 1 and weights.shape[1:3] == (1, 1) and (options.stride_h, options.stride_w) == (1, 1):
        # XNNPACK makes it a FULLY_CONNECTED, which quantizes pixel by pixel, unless it only scales numbers.
        batches = windows.count if filters + source.shape[3] > 2 else batches
    asymmetric, activation = per_channel or groups > 1, options.fused_activation_function
    return HybridLayer(node, source, weights, bias, 0, asymmetric, activation, batches, even)


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
    layer = _depthwise_layer(node, filters, options)
    return Convolution(Windows2D(source.shape[0], height, width, filters), channels, filters, layer)


def _depthwise_layer(node: Node, filters: int, options: DepthwiseConv2DOptions) -> QuantizedLayer | HybridLayer | None:
    """Check types and quantization; return the plan of a layer with integer weights, None for float weights."""
    source, weights = node.inputs[:2]
    bias, activation = node.optional_input(2), options.fused_activation_function
    if source.type == TensorType.FLOAT32:
        ensure_type(weights, TensorType.FLOAT32, TensorType.INT8)
        ensure_bias(bias, filters, TensorType.FLOAT32)
        if weights.type == TensorType.FLOAT32:
            return None
        from oplet_builtin_ops.layers.hybrid_layer import HybridLayer  # here, as many models have no such layers

        return HybridLayer(node, source, weights, bias, _CHANNELS, True, activation, source.shape[0])
    from oplet.kernels.requantization import Rounding
    from oplet_builtin_ops.layers.quantized_layer import convolution_layer

    # The converter writes int16 filters if the model computes them.
    types = TensorType.INT8, TensorType.INT4, *([source.type] if source.type == TensorType.INT16 else [])
    # Only LiteRT's optimized kernel supports 4-bit weights.
    rounding = Rounding.UP if weights.type == TensorType.INT4 and source.type == TensorType.INT8 else None
    return convolution_layer(node, source, weights, bias, activation, *types, axis=_CHANNELS, rounding=rounding)


def _prepare_convolution(context: Context, node: Node) -> None:
    from oplet_builtin_ops.layers import numpy_convolution  # here, as compiled kernels serve most of them; so below

    numpy_convolution.prepare(context, node, *check_convolution(context, node))


def _bind_convolution(context: Context, node: Node) -> Thunk:
    from oplet_builtin_ops.layers import numpy_convolution

    return numpy_convolution.bind(context, node)


def _prepare_depthwise(context: Context, node: Node) -> None:
    from oplet_builtin_ops.layers import numpy_depthwise

    numpy_depthwise.prepare(context, node, *check_depthwise(context, node))


def _bind_depthwise(context: Context, node: Node) -> Thunk:
    from oplet_builtin_ops.layers import numpy_depthwise

    return numpy_depthwise.bind(context, node)


CONV_2D = takes_halves(
    Registration(
        prepare=_prepare_convolution,
        bind=_bind_convolution,
        pure=True,
        types=SOURCES,
        remark=remark,
        differences="the bias may be missing, dilations may exceed 32767 and groups may have hybrid weights with a single scale",
    ),
    0,
    1,
    mixed=True,
)
DEPTHWISE_CONV_2D = takes_halves(
    Registration(prepare=_prepare_depthwise, bind=_bind_depthwise, pure=True, types=SOURCES, remark=remark), 0, 1, mixed=True
)
