"""CONCATENATION: inputs one after the other along an axis; uint8 inputs are rescaled to the output's quantization.

Numerics: tflite/kernels/concatenation.cc, tflite/kernels/internal/reference/concatenation.h
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, Tensor, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk, copies
from oplet.kernels.axes import along, resolve_axis
from oplet.kernels.fixed_point import ensure_scale, int32_of
from oplet.kernels.operands import ensure_operands, ensure_same_type
from oplet.schema.enums import ActivationFunctionType
from oplet.schema.options import ConcatenationOptions
from oplet_builtin_ops.arithmetic.quantization import ensure_same_quantization
from oplet_builtin_ops.shaping.joined_slices import bind_joined, prepare_joined, slices_to_absorb

_TYPES = (
    TensorType.FLOAT32, TensorType.FLOAT16, TensorType.BFLOAT16, TensorType.UINT8, TensorType.INT8, TensorType.INT16,
    TensorType.INT32, TensorType.INT64, TensorType.BOOL, TensorType.UINT32, TensorType.INT4,
)  # fmt: skip


def prepare(context: Context, node: Node) -> None:
    ensure(node.inputs, "it has no inputs and takes at least one.")
    ensure_operands(node, len(node.inputs))
    if node.absorbed:
        prepare_joined(context, node)
        return
    options = node.options(ConcatenationOptions)
    activation = options.fused_activation_function
    ensure(
        activation == ActivationFunctionType.NONE, lambda: f"it has the fused activation {activation.name}; only NONE is allowed."
    )
    first, output = node.inputs[0], node.outputs[0]
    ensure_type(first, *_TYPES)
    # Scalars are concatenated as vectors of one element.
    axis = resolve_axis(options.axis, max(first.ndim, 1))
    length = 0
    for tensor in node.inputs:
        ensure_same_type(tensor, output)
        fits = tensor.ndim == first.ndim and all(
            mine == its for i, (mine, its) in enumerate(zip(tensor.shape, first.shape)) if i != axis
        )
        if not fits:
            ensure(False, f"{tensor} and {first} differ elsewhere than on axis {axis}, along which they are concatenated.")
        length += tensor.shape[axis] if tensor.ndim else 1
        if tensor.type == TensorType.INT8:
            ensure_same_quantization(tensor, output)
        if tensor.type == TensorType.INT16:
            ensure(tensor.zero_point == 0, f"{tensor} has zero point {tensor.zero_point}; int16 takes 0 here.")
        if _rescales(tensor, output):
            ensure_scale(tensor)
            ensure_scale(output)
    context.resize_tensor(output, (*first.shape[:axis], length, *first.shape[axis + 1 :]))


def _rescales(tensor: Tensor, output: Tensor) -> bool:
    equal = tensor.scale == output.scale and tensor.zero_point == output.zero_point
    return tensor.type == TensorType.UINT8 and not equal


def _table(tensor: Tensor, output: Tensor) -> Array:
    """Return the uint8 table that requantizes each of the 256 uint8 values to the output, in LiteRT's float32 arithmetic."""
    with np.errstate(all="ignore"):
        factor = np.float32(tensor.scale) * (np.float32(1) / np.float32(output.scale))
        real = np.arange(256, dtype=np.float32) * factor + np.float32(-tensor.zero_point) * factor
        rounded = int32_of(np.copysign(np.floor(np.abs(real.astype(np.float64)) + 0.5), real))
    return np.asarray(np.clip(rounded + np.int32(output.zero_point), 0, 255)).astype(np.uint8)


def bind(context: Context, node: Node) -> Thunk:
    if node.absorbed:
        return bind_joined(node)
    output = node.outputs[0]
    options = node.options(ConcatenationOptions)
    axis = resolve_axis(options.axis, output.ndim)
    pieces: list[tuple[Array, Array]] = []
    tables: list[tuple[Array, Array, Array]] = []
    start = 0
    for tensor in node.inputs:
        source = tensor.data.reshape(tensor.shape or (1,))
        stop = start + source.shape[axis]
        target = output.data[along(axis, slice(start, stop))]
        start = stop
        if _rescales(tensor, output):
            tables.append((target, _table(tensor, output), source))
        else:
            pieces.append((target, source))

    if not tables:
        return copies(pieces)

    def run() -> None:
        for target, source in pieces:
            target[...] = source
        for target, table, source in tables:
            target[...] = table[source]

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=_TYPES, fuses=slices_to_absorb, speculative=True)
