"""CONV_3D: windows over the depth, height and width of a volume, each multiplied with every filter.

Numerics: tflite/kernels/conv3d.cc, tflite/kernels/internal/reference/conv3d.h
"""

from __future__ import annotations

from itertools import chain

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands
from oplet.schema.options import Conv3DOptions
from oplet_builtin_ops.layers.convolution_nd import Convolution, window_axes_3d
from oplet_builtin_ops.layers.float_layer import FloatFinish
from oplet_builtin_ops.layers.program import run_calls, run_program
from oplet_builtin_ops.layers.weights import ensure_bias
from oplet_builtin_ops.shaping.interior_padding import AxisPadding, padding_calls

_ZERO = np.zeros((), np.float32)


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2, optional=1)
    source, weights = node.inputs[:2]
    output = node.outputs[0]
    for tensor in (source, weights, output):
        ensure_type(tensor, TensorType.FLOAT32)
    for tensor in (source, weights):
        ensure(tensor.ndim == 5, f"{tensor} must have 5 dimensions.")
        ensure(0 not in tensor.shape[1:], f"{tensor} must not be empty.")
    ensure(
        source.shape[4] == weights.shape[3],
        f"{source} has {source.shape[4]} channels, the filters {weights} take {weights.shape[3]}.",
    )
    ensure_bias(node.optional_input(2), weights.shape[4], TensorType.FLOAT32)
    axes = window_axes_3d(node.options(Conv3DOptions), source.shape[1:4], weights.shape[:3])
    node.prepared = work = Convolution(source.shape[0], axes, source.shape[4], weights.shape[4])
    context.resize_tensor(output, (source.shape[0], *work.out, weights.shape[4]))
    context.add_temporary(node, (work.columns_size,), TensorType.FLOAT32)
    context.add_temporary(node, (source.shape[0], *(axis.padded for axis in axes), source.shape[4]), TensorType.FLOAT32)


def bind(context: Context, node: Node) -> Thunk:
    if not node.outputs[0].size:
        return run_calls([])
    work: Convolution = node.prepared
    source, weights = (tensor.data for tensor in node.inputs[:2])
    bias = node.optional_input(2)
    columns, padded = (temporary.data for temporary in node.temporaries)
    finish = FloatFinish(
        None if bias is None else bias.data,
        bias is not None and bias.is_constant,
        node.options(Conv3DOptions).fused_activation_function,
    )
    edges = [AxisPadding(axis.size, axis.before, axis.padded - axis.size - axis.before) for axis in work.axes]
    whole = AxisPadding(source.shape[0]), *edges, AxisPadding(source.shape[4])
    padding = [] if padded.shape == source.shape else padding_calls(source, list(whole), _ZERO, padded)
    maps = padded if padding else source
    return run_program(lambda: chain(padding, work.calls(maps, weights, columns, node.outputs[0].data, finish.calls)))


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(TensorType.FLOAT32,))
