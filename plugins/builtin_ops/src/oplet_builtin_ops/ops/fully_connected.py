"""FULLY_CONNECTED: the input's rows multiplied with the rows of the weights.

Float, quantized (uint8, int8, int16), hybrid (float activations; weights of 8, 4 or 2 bits, with one scale, one per row or one per
block of a row), sparse weights, and weights shuffled into 4x16 blocks. Numerics: tflite/kernels/fully_connected.cc,
tflite/kernels/internal/reference/fully_connected.h and integer_ops/fully_connected.h
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oplet import Context, Node, Registration, Tensor, TensorType, ensure, ensure_type
from oplet.schema.enums import ActivationFunctionType, FullyConnectedOptionsWeightsFormat
from oplet.schema.options import FullyConnectedOptions
from oplet_builtin_ops.arithmetic.fixed_point import apply_activation
from oplet_builtin_ops.arithmetic.requantize import Rounding
from oplet_builtin_ops.layers.convolution import Products, plan_products
from oplet_builtin_ops.layers.float_layer import FloatFinish
from oplet_builtin_ops.layers.hybrid_layer import HybridLayer
from oplet_builtin_ops.layers.program import Call, run_calls
from oplet_builtin_ops.layers.quantized_layer import (
    QuantizedLayer,
    channel_scales,
    ensure_bias,
    ensure_bias_scale,
    ensure_symmetric,
    weight_data,
)
from oplet_builtin_ops.layers.shuffled import ShuffledLayer
from oplet_builtin_ops.layers.streamed import Streamed, is_large, plan_streamed
from oplet_builtin_ops.layers.windows import Axis, Strip, Windows
from oplet_builtin_ops.shaping.shapes import Array, Thunk, ensure_operands

_SHUFFLED = FullyConnectedOptionsWeightsFormat.SHUFFLED4x16INT8
_NARROW = (TensorType.INT8, TensorType.INT4, TensorType.INT2)
#: The types of weights and of the output that go with each type of input.
_TYPES = {
    TensorType.FLOAT32: ((TensorType.FLOAT32, TensorType.UINT8, *_NARROW), (TensorType.FLOAT32,)),
    TensorType.UINT8: ((TensorType.UINT8,), (TensorType.UINT8, TensorType.INT16)),
    TensorType.INT8: (_NARROW, (TensorType.INT8,)),
    TensorType.INT16: ((*_NARROW, TensorType.INT16), (TensorType.INT16,)),
}
_CLAMPS = (
    ActivationFunctionType.NONE,
    ActivationFunctionType.RELU,
    ActivationFunctionType.RELU_N1_TO_1,
    ActivationFunctionType.RELU6,
)
#: From so many rows on, weights pay for being copied into the order in which products read them.
_MANY_ROWS = 16


def prepare(context: Context, node: Node) -> None:
    options = node.options(FullyConnectedOptions)
    shuffled = options.weights_format == _SHUFFLED
    ensure_operands(node, 2, 2 if shuffled else 1, optional=1)
    source, weights = node.inputs[:2]
    bias, output = node.optional_input(2), node.outputs[0]
    ensure_type(source, *_TYPES)
    ensure(weights.ndim == 2, f"the weights {weights} must have 2 dimensions.")
    units, depth = weights.shape
    count = _rows(source, weights, options)
    ensure(bias is None or bias.size == units, f"{bias} must have {units} values, one for each row of {weights}.")
    if options.keep_num_dims:
        context.resize_tensor(output, (*source.shape[:-1], units))
    else:
        context.resize_tensor(output, (count, units))
    if shuffled:
        node.prepared = ShuffledLayer(context, node, count, options.fused_activation_function)
        return
    ensure_type(weights, *_TYPES[source.type][0])
    ensure_type(output, *_TYPES[source.type][1])
    layer = _layer(node, count, options)
    compute = TensorType.FLOAT32 if layer is None else layer.compute
    in_place = output.type == TensorType.FLOAT32 and compute == TensorType.FLOAT32
    plan: Products | Streamed
    if layer is not None and is_large(weights) and not (isinstance(layer, HybridLayer) and layer.block_size):
        plan = plan_streamed(context, node, count, weights, source=source.type, compute=compute, in_place=in_place)
    else:
        single = Axis(1, 1, 1, 1, 1, 0)
        windows = Windows(count, single, single, depth)
        plan = plan_products(context, node, windows, units, source=source.type, compute=compute, in_place=in_place)
    if isinstance(layer, QuantizedLayer):
        layer.add_scratch(context, plan.longest * units)
    elif layer is not None:
        layer.add_scratch(context)
    node.prepared = plan, layer


def _rows(source: Tensor, weights: Tensor, options: FullyConnectedOptions) -> int:
    """How many rows the input has, once it is sure to be made of rows as long as those of the weights."""
    depth = weights.shape[1]
    if options.keep_num_dims:
        ensure(
            source.ndim > 0 and source.shape[-1] == depth,
            f"the last dimension of {source} must be {depth}, as the weights {weights} have it.",
        )
    if source.size == 0 and depth == 0:
        rows = 1
        for dim in source.shape[:-1]:
            rows *= dim
        return rows
    ensure(
        depth > 0 and source.size % depth == 0,
        f"{source} cannot be cut into rows of {depth}, as the weights {weights} take them.",
    )
    return source.size // depth


def _layer(node: Node, count: int, options: FullyConnectedOptions) -> QuantizedLayer | HybridLayer | None:
    """Check types and quantization; what a layer of integer weights needs, None for a float one."""
    source, weights = node.inputs[:2]
    bias, output, activation = node.optional_input(2), node.outputs[0], options.fused_activation_function
    units = weights.shape[0]
    hybrid = source.type == TensorType.FLOAT32 and weights.type != TensorType.FLOAT32
    ensure(hybrid or activation in _CLAMPS, f"{activation.name} cannot be fused into this op.")
    if weights.type in (TensorType.INT4, TensorType.INT2):
        ensure_symmetric(weights)
    if source.type == TensorType.FLOAT32:
        ensure_bias(bias, units, TensorType.FLOAT32)
        if not hybrid:
            return None
        quantization = weights.quantization
        if quantization is not None and quantization.block_size:
            wanted = -(-weights.size // quantization.block_size)
            ensure(
                weights.shape[1] % quantization.block_size == 0 and quantization.scales.size == wanted,
                f"{weights} has {quantization.scales.size} scales for blocks of {quantization.block_size}; "
                f"it needs {wanted}, and rows that are made of whole blocks.",
            )
            return HybridLayer(node, source, weights, bias, 0, True, activation, count)
        return HybridLayer(node, source, weights, bias, 0, options.asymmetric_quantize_inputs, activation, count)
    if source.type == TensorType.INT16:
        ensure_symmetric(source, output)
        ensure_bias(bias, units, TensorType.INT32, TensorType.INT64)
    else:
        ensure_bias(bias, units, TensorType.INT32)
    rounding = Rounding.WIDE if weights.type == TensorType.INT16 else Rounding.FLOAT
    single = weights.quantization is not None and not weights.quantization.per_channel
    scales = channel_scales(source, weights, output, units, 0, narrow=single and rounding is Rounding.WIDE)
    zero_point = 0
    if single:
        zero_point = weights.zero_point
        ensure_bias_scale(source, weights, bias, output)
    return QuantizedLayer(node, source, weights, bias, output, 0, scales, rounding, activation, zero_point)


def bind(context: Context, node: Node) -> Thunk:
    if isinstance(node.prepared, ShuffledLayer):
        return node.prepared.thunk()
    plan, layer = node.prepared
    if isinstance(layer, QuantizedLayer):
        return layer.thunk(lambda: _quantized_calls(node, plan, layer))
    if isinstance(layer, HybridLayer):
        return layer.thunk(lambda: _hybrid_calls(node, plan, layer))
    return _bind_float(node, plan)


def _bind_float(node: Node, plan: Products) -> Thunk:
    source, weights = node.inputs[:2]
    bias, output = node.optional_input(2), node.outputs[0]
    matrix = weight_data(node, weights).T
    if weights.is_constant and plan.windows.count >= _MANY_ROWS:
        matrix = node.cached("matrix", lambda: np.ascontiguousarray(matrix))
    finish = FloatFinish(
        None if bias is None else bias.data,
        bias is not None and bias.is_constant,
        node.options(FullyConnectedOptions).fused_activation_function,
    )
    target = output.data.reshape(plan.windows.count, plan.filters)
    return run_calls(plan.calls(source.data, 0, matrix[None], target, lambda _, block: finish.calls(block)))


def _arranged(node: Node, plan: Products | Streamed, layer: QuantizedLayer | HybridLayer) -> Array:
    """The weights as the plan multiplies them; a float copy is made once if they are constant."""
    if isinstance(plan, Streamed):
        return layer.rows()
    dtype: Any = np.float32 if layer.compute == TensorType.FLOAT32 else np.float64

    many = plan.windows.count >= _MANY_ROWS

    def make() -> Array:
        return np.asarray(layer.rows().T, dtype, order="C" if many else "F")

    matrix = node.cached(f"matrix {dtype} {many}", make) if layer.weights.is_constant else make()
    return matrix[None]


def _quantized_calls(node: Node, plan: Products | Streamed, layer: QuantizedLayer) -> list[Call]:
    requantizer = layer.requantizer()
    output = layer.output.data.reshape(-1, plan.filters)

    def finish(strip: Strip, block: Array) -> list[Call]:
        return layer.finish(requantizer, block, output[strip.start : strip.stop])

    return plan.calls(layer.source.data, 0, _arranged(node, plan, layer), output, finish)


def _hybrid_calls(node: Node, plan: Products | Streamed, layer: HybridLayer) -> list[Call]:
    finish = layer.finish()
    factors = np.empty((layer.batches, layer.channels), np.float32)
    output = node.outputs[0].data.reshape(-1, plan.filters)

    def finish_strip(strip: Strip, block: Array) -> list[Call]:
        target = output[strip.start : strip.stop]
        copy: list[Call] = [] if plan.accumulators is None else [(np.copyto, (target, block))]
        calls = copy + finish.calls(target, factors[strip.start : strip.stop])
        return calls if layer.activation in _CLAMPS else [*calls, (apply_activation, (target, layer.activation))]

    return layer.quantize(factors) + plan.calls(layer.quantized.data, 0, _arranged(node, plan, layer), output, finish_strip)


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=tuple(_TYPES))
