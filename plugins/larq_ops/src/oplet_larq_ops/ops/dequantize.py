"""LceDequantize: unpacks words of 32 bits into values, +1 for a bit 0 and -1 for a bit 1.

As int8 these are the nearest quantized values; as bool, True and False. How many values the last dimension has cannot be told from the
words, so the model's own number stays in a resize.

Numerics: larq_compute_engine/tflite/kernels/quantization.cc
"""

from __future__ import annotations

import math

import numpy as np

from oplet import Context, Node, Registration, Tensor, TensorType, checkpoint, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.fixed_point import ensure_scale
from oplet.kernels.operands import ensure_operands
from oplet_larq_ops.bits import unpack, words_for
from oplet_larq_ops.rows import blocks, ensure_rows

_TYPES = (TensorType.FLOAT32, TensorType.INT8, TensorType.BOOL)


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 1, 1)
    source, output = node.inputs[0], node.outputs[0]
    ensure_type(source, TensorType.INT32)
    ensure_type(output, *_TYPES)
    ensure_rows(source)
    ensure(output.ndim == source.ndim, lambda: f"{output} must have as many dimensions as {source}.")
    channels = output.shape[-1]
    ensure(
        words_for(channels) == source.shape[-1],
        lambda: f"{output} has rows of {channels} values, which take {words_for(channels)} words each, unlike those of {source}.",
    )
    node.prepared = _values(output)
    context.resize_tensor(output, (*source.shape[:-1], channels))


def _values(output: Tensor) -> Array:
    """Return what a bit 0 and a bit 1 stand for."""
    if output.type == TensorType.FLOAT32:
        return np.array([1, -1], np.float32)
    if output.type == TensorType.BOOL:
        return np.array([True, False])
    scale, zero = ensure_scale(output), output.zero_point
    ensure(scale > 0, lambda: f"{output} has scale 0; the values +1 and -1 need one above zero.")
    with np.errstate(over="ignore"):
        steps = float(np.float32(1) / np.float32(scale))
    offset = math.floor(min(steps, 512.0) + 0.5)  # beyond the type's range anyway
    return np.array([max(-128, min(127, zero + offset)), min(127, max(-128, zero - offset))], np.int8)


def bind(context: Context, node: Node) -> Thunk:
    source, output, values = node.inputs[0].data, node.outputs[0].data, node.prepared
    if not output.size:
        return lambda: None
    words, unpacked = source.reshape(-1, source.shape[-1]), output.reshape(-1, output.shape[-1])

    def run() -> None:
        for part in blocks(*unpacked.shape):
            checkpoint()
            np.take(values, unpack(words[part], unpacked.shape[1]), out=unpacked[part], mode="clip")

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=_TYPES)
