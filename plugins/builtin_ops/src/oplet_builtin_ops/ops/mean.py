"""MEAN: the mean over the axes that the second input names.

Numerics: tflite/kernels/reduce.cc, tflite/kernels/internal/reference/reduce.h (QuantizedMeanOrSum)
"""

from __future__ import annotations

from functools import partial
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from oplet import Context, Node, Registration, TensorType
from oplet.kernels.arrays import Thunk
from oplet.kernels.fixed_point import ensure_scale, quantize_multiplier, quotient
from oplet_builtin_ops.arithmetic.single_precision import takes_halves
from oplet_builtin_ops.shaping.reduction import QUANTIZED, bind_reduction, kept_shape, prepare_reduction, reduced_axes, summing

if TYPE_CHECKING:
    from oplet_builtin_ops.layers.program import Call

_TYPES = (TensorType.FLOAT32, TensorType.INT32, TensorType.INT64, *QUANTIZED)


def prepare(context: Context, node: Node) -> None:
    prepare_reduction(context, node, *_TYPES)
    if node.inputs[0].type in QUANTIZED:
        ensure_scale(node.inputs[0])
        ensure_scale(node.outputs[0])
        if node.prepared is True:
            for type in (TensorType.INT32, TensorType.INT64, TensorType.INT64):
                context.add_temporary(node, (node.outputs[0].size,), type)
            if _fits_float(node):
                context.add_temporary(node, node.inputs[0].shape)
                context.add_temporary(node, kept_shape(node))


def _fits_float(node: Node) -> bool:
    """Return whether float32 holds each sum of integers exactly, so that BLAS can compute it."""
    source = node.inputs[0]
    count = prod(source.shape[axis] for axis in reduced_axes(node))
    return 0 < count * int(np.iinfo(source.dtype).max + 1) < 2**24


def _bind_float(node: Node) -> Thunk:
    source, axes = node.inputs[0].data, reduced_axes(node)
    output = node.outputs[0].data.reshape(kept_shape(node))
    count = np.array(prod(source.shape[axis] for axis in axes), np.float32)
    add = summing(source, axes, output)

    def run() -> None:
        add()
        np.divide(output, count, output)

    return run


def _bind_integer(node: Node) -> Thunk:
    from oplet_builtin_ops.layers.program import convert  # here, as below: compiled kernels serve most

    source, axes = node.inputs[0].data, reduced_axes(node)
    output = node.outputs[0].data.reshape(kept_shape(node))
    count = prod(source.shape[axis] for axis in axes)

    def run() -> None:
        sums = np.add.reduce(source, axes, dtype=np.int64, keepdims=True)
        # C++ division truncates, numpy's rounds down.
        convert(output, np.sign(sums) * (np.abs(sums) // count))

    return run


def _bind_quantized(node: Node) -> Thunk:
    from oplet_builtin_ops.arithmetic.scaling import rescaler
    from oplet_builtin_ops.layers.program import convert, run_calls

    source, output, axes = node.inputs[0], node.outputs[0], reduced_axes(node)
    values, target = source.data, output.data.reshape(kept_shape(node))
    count = prod(source.shape[axis] for axis in axes)
    multiplier, shift = quantize_multiplier(quotient(source.scale, output.scale))
    # The division by the count is folded into the multiplier, as far as its 31 bits allow.
    bits = min(count.bit_length() - 1, 32, 31 + shift)
    multiplier, shift = (multiplier << bits) // count, shift - bits
    offset = np.array([source.zero_point * count]).astype(np.int32)
    limits = np.iinfo(target.dtype)
    # If the axes are not constant, the output's size is only known at run time.
    types = np.int32, np.int64, np.int64
    sums, wide, spare, *floats = [tensor.data for tensor in node.temporaries] or [np.empty(target.size, type) for type in types]
    bounds = int(limits.min), int(limits.max)
    finish = rescaler(sums, wide, spare, multiplier, shift, output.zero_point, bounds, target.reshape(-1))
    kept = sums.reshape(target.shape)
    if floats:
        real, totals = floats
        calls: list[Call] = [(np.copyto, (real, values)), (summing(real, axes, totals), ()), (convert, (kept, totals))]
    else:
        calls = [(partial(np.add.reduce, values, axes, np.int32, kept, True), ())]
    add_up = run_calls(calls)

    def run() -> None:
        add_up()
        np.subtract(sums, offset, sums)
        finish()

    return run


def _bind(node: Node) -> Thunk:
    source, output = node.inputs[0], node.outputs[0]
    if source.size == 0:
        # The mean of no values is NaN, which LiteRT writes as 0 for integers.
        return partial(output.data.fill, np.nan if source.type == TensorType.FLOAT32 else 0)
    if source.type == TensorType.FLOAT32:
        return _bind_float(node)
    return _bind_quantized(node) if source.type in QUANTIZED else _bind_integer(node)


def bind(context: Context, node: Node) -> Thunk:
    return bind_reduction(context, node, _bind)


REGISTRATION = takes_halves(Registration(prepare=prepare, bind=bind, pure=True, types=_TYPES))
