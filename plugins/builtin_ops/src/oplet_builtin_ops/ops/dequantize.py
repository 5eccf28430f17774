"""DEQUANTIZE: integers with a scale and zero point, or a scale for each block, or short floats, to float32.

A constant that is stored sparse is made dense first, as by a DENSIFY before it: the converter leaves that node out where the blocks are those
of its FULLY_CONNECTED, also before a DEQUANTIZE of float16 weights. LiteRT's three ways read what is stored as if it were dense.
Numerics: tflite/kernels/dequantize.h, internal/reference/dequantize.h
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np

from oplet import Context, Node, Registration, Tensor, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.operands import ensure_operands
from oplet_builtin_ops.arithmetic.quantization import channel_parameters
from oplet_builtin_ops.arithmetic.scaling import ensure_zero_point_is_zero
from oplet_builtin_ops.layers.blocks import block_size, ensure_blocks, from_blocks, given_scales
from oplet_builtin_ops.layers.weights import weight_data

SHORT_FLOATS: Final = (TensorType.FLOAT16, TensorType.FLOAT8_E4M3FN, TensorType.FLOAT8_E5M2)
INTEGERS: Final = (
    TensorType.INT8,
    TensorType.UINT8,
    TensorType.INT16,
    TensorType.INT4,
    TensorType.UINT4,
    TensorType.INT2,
)
_TYPES = (*INTEGERS, *SHORT_FLOATS)


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 1)
    source, output = node.inputs[0], node.outputs[0]
    ensure_type(source, *_TYPES)
    context.set_type(output, TensorType.FLOAT32)
    context.resize_tensor(output, source.shape)
    if source.type in SHORT_FLOATS:
        return
    if block_size(source):
        ensure_blocks(source)
        return
    node.prepared = scales, _ = channel_parameters(source, source.shape)
    if source.type == TensorType.INT16:
        ensure_zero_point_is_zero(source)
        ensure(scales.size == 1, f"{source} has {scales.size} scales; an int16 tensor may have one here.")


def expands(source: Tensor, output: Tensor) -> Callable[[Array, Array], None] | None:
    plain = source.sparsity is None and output.type is TensorType.FLOAT32
    return _widening(source.type) if plain and source.type in SHORT_FLOATS else None


def _widening(type: TensorType) -> Callable[[Array, Array], None]:
    if type is not TensorType.FLOAT16:
        return lambda source, output: np.copyto(output, source)
    from oplet_builtin_ops.arithmetic.half import widen_half

    return widen_half


def bind(context: Context, node: Node) -> Thunk:
    source, output = weight_data(node, node.inputs[0]), node.outputs[0].data
    if node.inputs[0].type in SHORT_FLOATS:
        return partial(_widening(node.inputs[0].type), source, output)
    if size := block_size(node.inputs[0]):
        factors = given_scales(node.inputs[0])

        def scale_blocks() -> None:
            output[...] = from_blocks(source, factors, size)

        return scale_blocks
    scales, zero_points = node.prepared
    offset = zero_points.astype(np.float32)
    if not offset.any():

        def scale() -> None:
            output[...] = source
            np.multiply(output, scales, output)

        return scale

    def run() -> None:
        output[...] = source
        np.subtract(output, offset, output)
        np.multiply(output, scales, output)

    return run


REGISTRATION = Registration(
    prepare=prepare,
    bind=bind,
    pure=True,
    sparse=frozenset({0}),
    expands=expands,
    types=_TYPES,
    differences="constants that are stored sparse are made dense first, where LiteRT reads what is stored as if it were dense",
)
