"""TRANSPOSE_CONV: the transpose of the convolution that maps the output to the input; the first input is the output's shape.

Float, quantized (uint8, int8, int16 activations with int8 weights) and hybrid (float activations, int8 weights). With VALID padding
the output may have any size: a smaller one is cropped (JAX's SAME), and beyond what the input covers a larger one has only the
bias.

Numerics: tflite/kernels/transpose_conv.cc, tflite/kernels/internal/reference/transpose_conv.h and integer_ops/transpose_conv.h
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain
from math import prod
from typing import Any

import numpy as np

from oplet import Context, Node, Registration, Tensor, TensorType, charge, ensure, ensure_fits, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.axes import read_ints
from oplet.kernels.operands import ensure_operands, ensure_same_type
from oplet.records import Row
from oplet.schema.options import TransposeConvOptions
from oplet_builtin_ops.arithmetic.single_precision import takes_halves
from oplet_builtin_ops.layers.float_layer import FloatFinish
from oplet_builtin_ops.layers.hybrid_layer import HybridLayer
from oplet_builtin_ops.layers.program import Call, run_anew, run_calls, run_program
from oplet_builtin_ops.layers.quantized_layer import QuantizedLayer, convolution_layer
from oplet_builtin_ops.layers.scattering import Scatter
from oplet_builtin_ops.layers.transposed_windows import transposed_axis
from oplet_builtin_ops.layers.weights import ensure_bias, weight_data
from oplet_builtin_ops.layers.windows import Strip, Windows
from oplet_builtin_ops.layers.xnnpack_claims import follows_claim, remark

_SOURCES = (TensorType.FLOAT32, TensorType.UINT8, TensorType.INT8, TensorType.INT16)
_FLOATS = {TensorType.FLOAT32: np.float32, TensorType.FLOAT64: np.float64}


class _Scratch(Row):
    centred: Any
    stamps: Any
    sums: Any
    block: Any
    scaled: Any


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 3, optional=1)
    shape, weights, source = node.inputs[:3]
    output = node.outputs[0]
    ensure_type(shape, TensorType.INT32)
    ensure(shape.shape == (4,), f"the output's shape {shape} must hold 4 values.")
    ensure_type(source, *_SOURCES)
    ensure_same_type(source, output)
    ensure(source.ndim == 4, f"{source} must have 4 dimensions.")
    ensure(weights.ndim == 4 and weights.size > 0, f"the filters {weights} must have 4 dimensions, none of them zero.")
    ensure(source.shape[3] == weights.shape[3], f"{source} and the filters {weights} must have the same last dimension.")
    layer = _layer(context, node)
    if layer is not None and not isinstance(layer, QuantizedLayer):
        layer.add_scratch(context)
    node.prepared = layer, None, None
    if not shape.is_constant:
        context.set_dynamic(output)
        return
    scatter = _scatter(context, node, layer)
    sizes = _scratch_sizes(node, scatter, layer)
    tensors = _Scratch(*(size and context.add_temporary(node, *size) for size in sizes))
    node.prepared = layer, scatter, tensors


def _layer(context: Context, node: Node) -> QuantizedLayer | HybridLayer | None:
    """Check types and quantization; return the plan of a layer with integer weights, None for float weights."""
    _, weights, source = node.inputs[:3]
    bias, activation = node.optional_input(3), node.options(TransposeConvOptions).fused_activation_function
    if source.type == TensorType.FLOAT32:
        ensure_type(weights, TensorType.FLOAT32, TensorType.INT8)
        ensure_bias(bias, weights.shape[0], TensorType.FLOAT32)
        if weights.type == TensorType.FLOAT32:
            return None
        return HybridLayer(node, source, weights, bias, 0, True, activation, source.shape[0], follows_claim(context, node))
    return convolution_layer(node, source, weights, bias, activation, TensorType.INT8, centred=True)


def _scatter(context: Context, node: Node, layer: QuantizedLayer | HybridLayer | None) -> Scatter:
    """Plan the transposed convolution once the output's shape is known; of floats a constant one has the input's batch, as in XNNPACK,
    whose integers are rounded otherwise: LiteRT's own kernel, whose rounding they have here, refuses another batch.
    """
    shape, weights, source = node.inputs[:3]
    options = node.options(TransposeConvOptions)
    batch, height, width, channels = wanted = read_ints(shape)
    batch = source.shape[0] if shape.is_constant and layer is None else batch
    filters, rows, columns, depth = weights.shape
    ensure_fits(
        batch == source.shape[0] and channels == filters,
        f"the output's shape is {wanted}; {source} and the filters {weights} make {source.shape[0]} maps of {filters} channels.",
    )
    ensure(height > 0 and width > 0, f"the output's shape is {wanted}; its height and width must be above zero.")
    y = transposed_axis("h", options.padding, height, rows, options.stride_h, source.shape[1])
    x = transposed_axis("w", options.padding, width, columns, options.stride_w, source.shape[2])
    ensure_fits(
        (y.out, x.out) == source.shape[1:3],
        f"an output of {height} x {width} belongs to an input of {y.out} x {x.out}, not to {source}.",
    )
    context.resize_tensor(node.outputs[0], (batch, height, width, channels))
    return Scatter(Windows(batch, y, x, filters), depth, isinstance(layer, HybridLayer))


def _compute(layer: QuantizedLayer | HybridLayer | None) -> TensorType:
    return TensorType.FLOAT32 if layer is None else layer.compute


def _scratch_sizes(node: Node, scatter: Scatter, layer: QuantizedLayer | HybridLayer | None) -> _Scratch:
    """Return shape and type of each scratch array; None for those that are not needed."""
    compute = _compute(layer)
    quantized = isinstance(layer, QuantizedLayer)
    in_place = compute == node.outputs[0].type
    return _Scratch(
        (scatter.centred_shape, compute) if quantized or not in_place else None,
        (scatter.stamps_shape, compute),
        (scatter.windows.padded_shape, compute) if not in_place or scatter.windows.is_padded else None,
        None if in_place else ((scatter.finished,), compute),
        ((scatter.finished,), TensorType.FLOAT64) if quantized else None,
    )


def bind(context: Context, node: Node) -> Thunk:
    layer, scatter, tensors = node.prepared
    weights, bias = node.inputs[1], node.optional_input(3)
    if scatter is None:
        return lambda: _run_sized(context, node, layer)
    if not node.outputs[0].size:
        return run_calls([])
    scratch = _Scratch(*(tensor and tensor.data for tensor in tensors))

    calls = partial(_calls, node, layer, scatter, scratch)
    return run_program(calls) if weights.is_constant and (bias is None or bias.is_constant) else partial(run_anew, calls)


def _run_sized(context: Context, node: Node, layer: QuantizedLayer | HybridLayer | None) -> None:
    """Run with an output shape that is a run-time input and decides the scratch memory."""
    scatter = _scatter(context, node, layer)
    sizes = _scratch_sizes(node, scatter, layer)
    charge(sum(prod(shape) * _FLOATS[type]().nbytes for shape, type in filter(None, sizes)))
    scratch = _Scratch(*(size and np.empty(size[0], _FLOATS[size[1]]) for size in sizes))
    run_anew(partial(_calls, node, layer, scatter, scratch))


def _matrix(node: Node, weights: Tensor, values: Array, dtype: Any) -> Array:
    """Return the weights as a matrix with one row per input channel, cached if constant."""
    filters, height, width, depth = weights.shape

    def make() -> Array:
        stamps = values.reshape(filters, height, width, depth).transpose(3, 1, 2, 0)
        return np.ascontiguousarray(stamps.reshape(depth, -1), dtype)

    return node.cached(("matrix", dtype, node.inputs[2].type), [weights], make, shared=True)


def _calls(node: Node, layer: QuantizedLayer | HybridLayer | None, scatter: Scatter, scratch: _Scratch) -> Iterator[Call]:
    _, weights, source = node.inputs[:3]
    bias, output = node.optional_input(3), node.outputs[0]
    channels = scatter.windows.channels
    values = weight_data(node, weights) if layer is None else layer.rows()
    matrix = _matrix(node, weights, values, _FLOATS[_compute(layer)])
    target = output.data.reshape(-1, channels)
    sums = output.data if scratch.sums is None else scratch.sums
    places = scratch.centred, scratch.stamps, sums, scratch.block, target

    if isinstance(layer, QuantizedLayer):
        requantizer = layer.requantizer()

        def requantize(strip: Strip, block: Array) -> list[Call]:
            return requantizer.calls(block, target[strip.start : strip.stop], scratch.scaled)

        return scatter.calls(source.data, source.zero_point, matrix, *places, requantize)

    if isinstance(layer, HybridLayer):
        finish, factors = layer.finish(), np.empty((layer.batches, channels), np.float32)

        def scale(strip: Strip, block: Array) -> list[Call]:
            part = target[strip.start : strip.stop]
            copy: list[Call] = [] if scratch.block is None else [(np.copyto, (part, block))]
            return copy + finish.calls(part, factors[strip.where[0].start])

        return chain(layer.quantize(factors), scatter.calls(layer.quantized.data, 0, matrix, *places, scale))

    plain = FloatFinish(
        None if bias is None else bias.data,
        bias is not None and bias.is_constant,
        node.options(TransposeConvOptions).fused_activation_function,
    )
    return scatter.calls(source.data, 0, matrix, *places, lambda _, block: plain.calls(block))


REGISTRATION = takes_halves(
    Registration(
        prepare=prepare,
        bind=bind,
        pure=True,
        types=_SOURCES,
        remark=remark,
        differences="with VALID padding an output smaller than what the input covers is cut off, as JAX means it; XNNPACK gives another "
        "shape than the one asked for, and the other kernels refuse it",
    ),
    1,
    2,
    mixed=True,
)
