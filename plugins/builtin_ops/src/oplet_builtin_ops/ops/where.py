"""WHERE: the positions of all values that are not zero, one row each. Numerics: tflite/kernels/where.cc"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, charge, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands

_TYPES = (
    TensorType.BOOL, TensorType.FLOAT32, TensorType.INT64, TensorType.INT32, TensorType.INT8, TensorType.UINT8,
    TensorType.UINT32,
)  # fmt: skip


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 1)
    condition, output = node.inputs[0], node.outputs[0]
    ensure_type(condition, *_TYPES)
    if condition.is_constant:
        ensure(condition.ndim > 0, f"{condition} must have at least one dimension.")
    context.set_type(output, TensorType.INT64)
    context.set_dynamic(output)
    context.add_temporary(node, (condition.size,), TensorType.BOOL)


def bind(context: Context, node: Node) -> Thunk:
    ensure(node.inputs[0].ndim, f"{node.inputs[0]} must have at least one dimension.")
    condition, output = node.inputs[0].data, node.outputs[0]
    flat, shape, marked = condition.reshape(-1), condition.shape, node.temporaries[0].data
    zero = np.zeros((), condition.dtype)

    def run() -> None:
        np.not_equal(flat, zero, marked)
        count = int(np.count_nonzero(marked))
        context.resize_tensor(output, (count, len(shape)))
        if count:
            charge(8 * count * (1 + len(shape)))
            places = marked.nonzero()[0]
            for column, found in zip(output.data.T, np.unravel_index(places, shape)):
                column[...] = found

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=_TYPES)
