"""Which layers of float activations and integer weights XNNPACK, LiteRT's default delegate, claims.

LiteRT's default answers for such a layer are XNNPACK's, which quantizes each row of the activations (CONV_2D and TRANSPOSE_CONV: each
image) with a zero point, in its own rounding; LiteRT's own kernels run what it does not claim. Nodes that XNNPACK claims and then cannot
prepare, so that LiteRT refuses the model, count as not claimed.

Source: VisitFullyConnectedNode, VisitConv2DNode, VisitTransposeConvNode, VisitBatchMatMulNode and VisitDepthwiseConv2DNode in
tflite/delegates/xnnpack/xnnpack_delegate.cc
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Tensor, TensorType
from oplet.kernels.activations import CLAMPS
from oplet.records import Row
from oplet.schema.enums import BuiltinOperator, Padding
from oplet.schema.options import BatchMatMulOptions, Conv2DOptions, FullyConnectedOptions, TransposeConvOptions
from oplet_builtin_ops.layers.blocks import block_size, follow_xnnpack

__all__ = ["follows_claim", "remark", "unclaimed"]

_FLOATS = TensorType.FLOAT32, TensorType.FLOAT16
_NARROW = TensorType.INT4, TensorType.INT2
_INTEGERS = TensorType.INT8, TensorType.UINT8, *_NARROW
_TINIEST = np.finfo(np.float32).tiny
#: The multiple that the length of a row must be, by the type of its weights.
_MULTIPLES = {TensorType.INT4: 2, TensorType.INT2: 4}


class _Places(Row):
    """Where a layer has its operands: positions of activations, weights and bias (-1 for no bias)."""

    source: int = 0
    weights: int = 1
    bias: int = 2


_LAYERS = {
    BuiltinOperator.FULLY_CONNECTED: _Places(),
    BuiltinOperator.CONV_2D: _Places(),
    BuiltinOperator.DEPTHWISE_CONV_2D: _Places(),
    BuiltinOperator.TRANSPOSE_CONV: _Places(source=2, bias=3),
    BuiltinOperator.BATCH_MATMUL: _Places(bias=-1),
}


def follows_claim(context: Context, node: Node) -> bool:
    """Return whether a node's activations are quantized as in XNNPACK: XNNPACK would claim it, and default delegates are enabled."""
    return context.default_delegates and not unclaimed(node)


def remark(node: Node, default_delegates: bool) -> str:
    """Return in words, for `explain()`, whether a layer of float activations and integer weights has XNNPACK's results.

    The result is "" for other layers.
    """
    places = _LAYERS[node.op]
    source, weights = node.inputs[places.source], node.inputs[places.weights]
    if source.type not in _FLOATS or weights.type not in _INTEGERS:
        return ""
    if block_size(weights) and node.op is BuiltinOperator.FULLY_CONNECTED:
        return "its numbers are XNNPACK's" if follow_xnnpack(weights) else "its blocks of weights are none that XNNPACK takes"
    if not default_delegates:
        return "its numbers are those of LiteRT's own kernels, as the resolver type wants"
    why = unclaimed(node)
    return f"its numbers are those of LiteRT's own kernels: {why}" if why else "its numbers are XNNPACK's"


def unclaimed(node: Node) -> str:
    """Return why XNNPACK does not claim a layer of float activations and integer weights; "" if it does."""
    places = _LAYERS[node.op]
    weights = node.inputs[places.weights]
    if node.op is BuiltinOperator.DEPTHWISE_CONV_2D:
        return "XNNPACK runs no depthwise layer of floats and integer weights"
    if weights.type is not TensorType.INT8 and (weights.type not in _NARROW or node.op is not BuiltinOperator.FULLY_CONNECTED):
        return f"XNNPACK takes no {weights.type.name} weights here"
    if not weights.is_constant:  # it takes sparse ones for dense, and reads beyond their end
        return "XNNPACK takes only constant weights"
    return _of_scales(node, weights) or _of_bias(node, places.bias) or _RULES[node.op](node)


def _of_scales(node: Node, weights: Tensor) -> str:
    quantization = weights.quantization
    if quantization is None or not quantization.scales.size or quantization.block_size:
        return "XNNPACK takes weights with one scale, or one per output channel"
    scales, points = quantization.scales, quantization.zero_points
    if not (scales.min() >= _TINIEST and np.isfinite(scales.max())):
        return "XNNPACK takes no scale of 0, none below the smallest normal number and none that is not finite"
    if weights.type is TensorType.INT2 and scales.size != weights.shape[0]:
        return "XNNPACK takes INT2 weights only with a scale per output channel"
    # Convolutions ignore a single zero point.
    windows = node.op in (BuiltinOperator.CONV_2D, BuiltinOperator.TRANSPOSE_CONV)
    return "XNNPACK takes no zero points of weights" if points.any() and (scales.size > 1 or not windows) else ""


def _of_bias(node: Node, position: int) -> str:
    bias = node.optional_input(position) if position >= 0 else None
    if bias is None:
        return "XNNPACK takes no CONV_2D without bias" if node.op is BuiltinOperator.CONV_2D else ""
    return "" if bias.is_constant else "XNNPACK takes only constant biases"


def _of_activation(activation: object) -> str:
    return "" if activation in CLAMPS else "XNNPACK fuses no such activation"


def _of_rows(node: Node) -> str:
    weights = node.inputs[1]
    multiple = _MULTIPLES.get(weights.type, 1)
    if weights.shape[-1] % multiple:
        return f"XNNPACK takes rows of {weights.type.name} weights whose length is a multiple of {multiple}"
    return _of_activation(node.options(FullyConnectedOptions).fused_activation_function)


def _of_convolution(node: Node) -> str:
    return _of_activation(node.options(Conv2DOptions).fused_activation_function)


def _of_transposed(node: Node) -> str:
    shape, weights = node.inputs[:2]
    options = node.options(TransposeConvOptions)
    if not shape.is_constant:
        return "XNNPACK takes only a constant output shape"
    _, rows, columns, _ = weights.shape
    if options.padding is Padding.SAME and (rows < options.stride_h or columns < options.stride_w):
        return "XNNPACK takes no strides longer than the filters, with SAME padding"
    height, width = np.asarray(shape.data).reshape(-1)[1:3]
    if options.padding is Padding.VALID and (height < rows or width < columns):
        return "XNNPACK takes no output smaller than the filters, with VALID padding"
    return _of_activation(options.fused_activation_function)


def _of_product(node: Node) -> str:
    right, options = node.inputs[1], node.options(BatchMatMulOptions)
    columns = right.ndim - (2 if options.adj_y else 1)
    quantization = right.quantization
    along = quantization is None or quantization.scales.size == 1 or quantization.quantized_dimension == columns
    return "" if along else "XNNPACK takes scales along the columns of the product only"


_RULES = {
    BuiltinOperator.FULLY_CONNECTED: _of_rows,
    BuiltinOperator.CONV_2D: _of_convolution,
    BuiltinOperator.TRANSPOSE_CONV: _of_transposed,
    BuiltinOperator.BATCH_MATMUL: _of_product,
}
