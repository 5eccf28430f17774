"""PRELU: x, or alpha * x below zero, with an alpha that is a tensor; the two broadcast.

Numerics: tflite/kernels/internal/reference/prelu.h, and XNNPACK, which alone lets floats take a larger alpha's shape
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure_fits, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.broadcasting import broadcast_shape
from oplet.kernels.fixed_point import clip, quantized_range
from oplet.kernels.operands import ensure_operands
from oplet_builtin_ops.arithmetic.quantization import ensure_quantized
from oplet_builtin_ops.arithmetic.single_precision import takes_halves
from oplet_builtin_ops.elementwise import binary_arithmetic as binary
from oplet_builtin_ops.elementwise.activations import scale_ratio, scaled
from oplet_builtin_ops.elementwise.blocks import run_blocks, scratch_shape
from oplet_builtin_ops.layers.program import Call

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TYPES = (TensorType.FLOAT32, TensorType.INT8, TensorType.UINT8, TensorType.INT16)


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2)
    source, alpha = node.inputs
    output = node.outputs[0]
    ensure_type(source, *_TYPES)
    context.set_type(output, source.type)
    if source.type == TensorType.INT16:
        ensure_type(alpha, TensorType.INT8, TensorType.INT16)
    else:
        ensure_type(alpha, source.type)
    shape = broadcast_shape(source, alpha)
    context.resize_tensor(output, shape)
    if source.type == TensorType.FLOAT32:
        largest = _largest(node)
        if largest is None:
            context.add_temporary(node, shape, TensorType.BOOL)
            return
        passes = 2 if largest <= 1 else 4
        context.add_temporary(node, scratch_shape(context, binary.long_shapes(source, alpha, output), passes))
        node.in_place = [source]
        return
    ensure_fits(
        shape == source.shape, lambda: f"{alpha} would broadcast {source} to {list(shape)}; the output keeps the input's shape."
    )
    node.in_place = [source]
    ensure_quantized(source, alpha, output)
    node.prepared = scale_ratio(source, output), scale_ratio(source, output, alpha.scale)
    if source.type != TensorType.INT16:
        binary.add_pair_scratch(context, node)


def _largest(node: Node) -> float | None:
    """Return the maximum of a constant finite alpha (-inf if empty); None if alpha is not constant or not finite."""
    alpha = node.inputs[1]
    if not alpha.is_constant:
        return None

    def find() -> float | None:
        low = np.minimum.reduce(alpha.data, None, initial=np.inf)
        high = np.maximum.reduce(alpha.data, None, initial=-np.inf)
        return float(high) if not alpha.size or (low > -np.inf and high < np.inf) else None  # this is false for NaN too

    return node.cached("largest alpha", [alpha], find)


def bind(context: Context, node: Node) -> Thunk:
    if node.inputs[0].type == TensorType.FLOAT32:
        return _bind_float(context, node)
    source, alpha = node.inputs
    output = node.outputs[0]
    ratio, slope = node.prepared
    low, high = quantized_range(output.type)

    def rule(x: NDArray[np.int64], y: NDArray[np.int64]) -> NDArray[np.int64]:
        x = x - source.zero_point
        below = scaled(x * (y - alpha.zero_point), slope)
        return np.asarray(np.clip(np.where(x >= 0, scaled(x, ratio), below) + output.zero_point, low, high))

    if source.type != TensorType.INT16:
        return binary.bind_pairs(node, rule)
    # Whatever alpha's type is, LiteRT reads its memory as int8 here.
    x, y, target = source.data, alpha.data.reshape(-1).view(np.int8)[: alpha.size].reshape(alpha.shape), output.data

    def run() -> None:
        target[...] = rule(x.astype(np.int64), y.astype(np.int64))

    return run


def _bind_float(context: Context, node: Node) -> Thunk:
    x, alpha, output = arrays = binary.long_rows(node, node.inputs[0], node.inputs[1], node.outputs[0])
    scratch = node.temporaries[0].data
    largest = _largest(node)
    if largest is not None and largest <= 1:
        # fmax ignores the NaN of an infinite x times an alpha of 0.
        return run_blocks(
            context,
            arrays,
            2,
            lambda x, alpha, output, scratch: [(np.multiply, (x, alpha, scratch)), (np.fmax, (x, scratch, output))],
            scratch,
        )
    zero = np.array(0, np.float32)
    if largest is not None:
        infinity, minus_infinity = np.array(np.inf, np.float32), np.array(-np.inf, np.float32)

        def calls(x: Array, alpha: Array, output: Array, scratch: Array) -> list[Call]:
            # The sum of the positive and the negative part; five times as fast as copying by a mask.
            return [
                (clip, (x, minus_infinity, zero, scratch)),
                (np.multiply, (scratch, alpha, scratch)),
                (clip, (x, zero, infinity, output)),
                (np.add, (output, scratch, output)),
            ]

        return run_blocks(context, arrays, 4, calls, scratch)
    keep = scratch.reshape(output.shape)

    def run_any() -> None:
        np.greater_equal(x, zero, keep)
        np.multiply(x, alpha, output)
        np.copyto(output, x, where=keep)

    return run_any


REGISTRATION = takes_halves(Registration(prepare=prepare, bind=bind, pure=True, types=_TYPES))
