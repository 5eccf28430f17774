"""CONV_2D: windows over the height and width, each multiplied with every filter; in groups of channels if filters have fewer
channels.

Float, quantized (uint8, int8, int16 activations with int8 or int4 weights) and hybrid (float activations, integer weights).

Numerics: tflite/kernels/conv.cc, tflite/kernels/internal/reference/conv.h and integer_ops/conv.h
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from oplet import Context, Node, Registration, Tensor, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.operands import ensure_operands, ensure_same_type
from oplet.kernels.windows import window_axis
from oplet.schema.options import Conv2DOptions
from oplet_builtin_ops.arithmetic.single_precision import takes_halves
from oplet_builtin_ops.layers import remark
from oplet_builtin_ops.layers.convolution import Products, filter_matrices, plan_products
from oplet_builtin_ops.layers.program import Call, run_calls, run_program
from oplet_builtin_ops.layers.quantized_layer import (
    QuantizedLayer,
    channel_scales,
    ensure_bias_scale,
    ensure_symmetric,
    rounding_of,
)
from oplet_builtin_ops.layers.weights import ensure_bias, transposed
from oplet_builtin_ops.layers.windows import Strip, Windows

if TYPE_CHECKING:
    from oplet_builtin_ops.layers.hybrid_layer import HybridLayer

_SOURCES = (TensorType.FLOAT32, TensorType.UINT8, TensorType.INT8, TensorType.INT16)
_HYBRID_WEIGHTS = (TensorType.INT8, TensorType.INT4, TensorType.INT2, TensorType.UINT8)


def prepare(context: Context, node: Node) -> None:
    # The bias may be left out (-1), but its position must be there.
    ensure(len(node.inputs) == 3, f"the number of inputs is {len(node.inputs)}, it must be 3.")
    ensure_operands(node, 2, optional=1)
    source, weights = node.inputs[:2]
    bias, output = node.optional_input(2), node.outputs[0]
    options = node.options(Conv2DOptions)
    ensure_type(source, *_SOURCES)
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
    windows = Windows(
        source.shape[0],
        window_axis("h", options.padding, source.shape[1], rows, options.stride_h, options.dilation_h_factor),
        window_axis("w", options.padding, source.shape[2], columns, options.stride_w, options.dilation_w_factor),
        channels,
    )
    context.resize_tensor(output, (source.shape[0], windows.height.out, windows.width.out, filters))
    if source.type != TensorType.FLOAT32:
        node.prepared = _plan_quantized(context, node, windows, groups, options)
    elif weights.type == TensorType.FLOAT32:
        ensure_bias(bias, filters, TensorType.FLOAT32)
        node.prepared = plan_products(
            context, node, windows, filters, source=source.type, compute=source.type, groups=groups, in_place=True
        )
    else:
        node.prepared = _plan_hybrid(context, node, windows, groups, options)


def bind(context: Context, node: Node) -> Thunk:
    if not node.outputs[0].size:
        return run_calls([])
    if isinstance(node.prepared, Products):
        return _bind_float(node, node.prepared)
    products: Products
    layer: QuantizedLayer | HybridLayer
    products, layer = node.prepared
    if isinstance(layer, QuantizedLayer):
        return layer.thunk(lambda: _quantized_calls(node, products, layer))
    return layer.thunk(lambda: _hybrid_calls(node, products, layer))


def _matrices(
    node: Node, products: Products, rows: Callable[[], Array], dtype: np.dtype, weights: Tensor, *, scaled: bool = False
) -> Array:
    """Return the weights as one matrix for each group, cached if constant; the input's shape decides their layout.

    Args:
        rows: returns the weights; it is called only where they are not made yet.
        scaled: whether they come multiplied with the output factors, as `QuantizedLayer.fold` decides.
    """
    groups = products.groups

    def make() -> Array:
        return transposed(rows().reshape(groups, products.filters // groups, -1), dtype)

    # The factors depend on weights and bias, and on tensors whose quantization does not change.
    key = "matrices", dtype, groups, scaled, node.inputs[0].type, node.outputs[0].type
    return node.cached(key, [weights, node.optional_input(2) if scaled else None], make, shared=True)


def _bind_float(node: Node, products: Products) -> Thunk:
    from oplet_builtin_ops.layers.float_layer import FloatFinish  # here, as compiled kernels serve most of them

    source, weights = node.inputs[:2]
    bias = node.optional_input(2)
    if weights.is_constant and products.windows.count > 4:
        # BLAS is faster if it reads a matrix along its rows; for a few windows the copy would take longer.
        matrices = _matrices(node, products, lambda: weights.data, weights.dtype, weights)
    else:
        matrices = filter_matrices(weights.data, products.groups)
    finish = FloatFinish(
        None if bias is None else bias.data,
        bias is not None and bias.is_constant,
        node.options(Conv2DOptions).fused_activation_function,
        node,
    )
    output = node.outputs[0].data.reshape(-1, products.filters)
    return run_program(lambda: products.calls(source.data, np.float32(0), matrices, output, lambda _, block: finish.calls(block)))


def _plan_quantized(
    context: Context, node: Node, windows: Windows, groups: int, options: Conv2DOptions
) -> tuple[Products, QuantizedLayer]:
    source, weights = node.inputs[:2]
    bias, output = node.optional_input(2), node.outputs[0]
    filters = weights.shape[0]
    if source.type == TensorType.UINT8:
        ensure_type(weights, TensorType.UINT8)
        ensure_bias(bias, filters, TensorType.INT32)
    else:
        # The converter writes int16 filters if the model computes them.
        ensure_type(weights, TensorType.INT8, TensorType.INT4, *([source.type] if source.type == TensorType.INT16 else []))
        ensure_symmetric(weights)
        if source.type == TensorType.INT16:
            ensure_symmetric(source, output)
            ensure_bias(bias, filters, TensorType.INT32, TensorType.INT64)
        else:
            ensure_bias(bias, filters, TensorType.INT32)
    scales = channel_scales(source, weights, output, filters, 0, narrow=source.type == TensorType.UINT8)
    if source.type == TensorType.UINT8:
        ensure_bias_scale(source, weights, bias, output)
    rounding, activation = rounding_of(source, bias), options.fused_activation_function
    as_int8 = weights.type == TensorType.INT16
    layer = QuantizedLayer(
        node, source, weights, bias, output, 0, scales, rounding, activation, weights.zero_point, as_int8=as_int8
    )
    if windows.are_rows and groups == 1:
        # Gathering patches takes twice as long for float64; and what is added to an output has no place among those of several groups.
        layer.fold(weights.size // filters)
    products = plan_products(
        context, node, windows, filters, source=source.type, compute=layer.compute, groups=groups, added=int(layer.folds)
    )
    layer.add_scratch(context, products.longest * filters, products.lanes)
    return products, layer


def _quantized_calls(node: Node, products: Products, layer: QuantizedLayer) -> Iterator[Call]:
    requantizer = layer.requantizer()
    dtype = np.dtype(np.float32 if layer.compute == TensorType.FLOAT32 else np.float64)

    def rows() -> Array:
        return requantizer.scaled(layer.rows()) if layer.folds else layer.rows()

    matrices = _matrices(node, products, rows, dtype, layer.weights, scaled=layer.folds)
    output = layer.output.data.reshape(-1, products.filters)

    def finish(strip: Strip, block: Array) -> list[Call]:
        return layer.finish(requantizer, block, output[strip.start : strip.stop], strip.lane)

    return products.calls(layer.source.data, layer.source.zero_point, matrices, output, finish)


def _plan_hybrid(
    context: Context, node: Node, windows: Windows, groups: int, options: Conv2DOptions
) -> tuple[Products, HybridLayer]:
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
    layer = HybridLayer(node, source, weights, bias, 0, asymmetric, activation, batches, even)
    layer.add_scratch(context)
    products = plan_products(
        context,
        node,
        windows,
        filters,
        source=TensorType.FLOAT32,
        compute=layer.compute,
        groups=groups,
        in_place=layer.compute == TensorType.FLOAT32,
        by_image=True,
    )
    return products, layer


def _hybrid_calls(node: Node, products: Products, layer: HybridLayer) -> Iterator[Call]:
    finish = layer.finish()
    factors = np.empty((layer.batches, layer.channels), np.float32)
    dtype = np.dtype(np.float32 if layer.compute == TensorType.FLOAT32 else np.float64)
    matrices = _matrices(node, products, layer.rows, dtype, layer.weights)
    output = node.outputs[0].data.reshape(-1, products.filters)

    def finish_strip(strip: Strip, block: Array) -> list[Call]:
        target = output[strip.start : strip.stop]
        copy: list[Call] = [] if products.accumulators is None else [(np.copyto, (target, block))]
        by_pixel = layer.batches == len(output)
        return copy + finish.calls(target, factors[strip.start : strip.stop] if by_pixel else factors[strip.where[0].start])

    return chain(layer.quantize(factors), products.calls(layer.quantized.data, np.float32(0), matrices, output, finish_strip))


REGISTRATION = takes_halves(
    Registration(
        prepare=prepare,
        bind=bind,
        pure=True,
        types=_SOURCES,
        remark=remark,
        differences="the bias may be missing, dilations may exceed 32767 and groups may have hybrid weights with a single scale",
    ),
    0,
    1,
    mixed=True,
)
