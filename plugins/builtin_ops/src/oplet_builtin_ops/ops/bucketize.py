"""BUCKETIZE: the number of the sorted boundaries that are not above a value. Numerics: tflite/kernels/bucketize.cc"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.operands import ensure_operands
from oplet.schema.options import BucketizeOptions

_TYPES = (TensorType.FLOAT32, TensorType.FLOAT64, TensorType.INT32, TensorType.INT64)


def _boundaries(node: Node) -> Array:
    boundaries = node.options(BucketizeOptions).boundaries
    return np.zeros(0, np.float32) if boundaries is None else np.asarray(boundaries, np.float32)


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 1)
    source, output = node.inputs[0], node.outputs[0]
    boundaries = _boundaries(node)
    falls = np.flatnonzero(boundaries[1:] < boundaries[:-1])
    ensure(
        not falls.size,
        f"the boundaries must be sorted; {boundaries[falls[:1]]} comes before {boundaries[falls[:1] + 1]}.",
    )
    ensure_type(source, *_TYPES)
    context.set_type(output, TensorType.INT32)
    context.resize_tensor(output, source.shape)


def bind(context: Context, node: Node) -> Thunk:
    source, output = node.inputs[0].data, node.outputs[0].data
    # As in C++, integers are compared as float32.
    wide = np.dtype(np.float64 if source.dtype == np.float64 else np.float32)
    boundaries = _boundaries(node).astype(wide)

    def run() -> None:
        output[...] = np.searchsorted(boundaries, source.astype(wide, copy=False), "right")

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=_TYPES)
