"""LceQuantize: packs the signs of values into words of 32 bits, 1 for what is below zero.

-0.0 and NaN are not below zero, nor are subnormal floats, which larq's runtime takes for zeros. Of int8 the zero point is zero, and of bool False is below it.

Numerics: larq_compute_engine/tflite/kernels/quantization.cc
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, checkpoint, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.operands import ensure_operands
from oplet_larq_ops.bits import pack, words_for
from oplet_larq_ops.rows import blocks, ensure_rows

_TYPES = (TensorType.FLOAT32, TensorType.INT8, TensorType.BOOL)

#: The largest number below zero that is not subnormal.
_LARGEST_BELOW = -np.finfo(np.float32).tiny


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 1, 1)
    source, output = node.inputs[0], node.outputs[0]
    ensure_type(source, *_TYPES)
    ensure_type(output, TensorType.INT32)
    ensure_rows(source)
    *outer, channels = source.shape
    context.resize_tensor(output, (*outer, words_for(channels)))


def bind(context: Context, node: Node) -> Thunk:
    source, output = node.inputs[0], node.outputs[0].data
    values, words = source.data.reshape(-1, source.shape[-1] or 1), output.reshape(-1, output.shape[-1] or 1)
    zero = source.zero_point if source.type == TensorType.INT8 else 0
    if not values.size:
        return lambda: None

    def run() -> None:
        for part in blocks(*values.shape):
            checkpoint()
            np.copyto(words[part], pack(_below(values[part], zero)))

    return run


def _below(values: Array, zero: int) -> Array:
    """Return which values are below zero."""
    bits = np.empty(values.shape, np.bool_)
    if values.dtype == np.bool_:
        np.logical_not(values, bits)
    elif values.dtype == np.float32:
        np.less_equal(values, _LARGEST_BELOW, bits)
    else:
        np.less(values, np.int8(zero), bits)
    return bits


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=_TYPES)
