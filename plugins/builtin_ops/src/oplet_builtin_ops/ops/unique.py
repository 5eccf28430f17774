"""UNIQUE: the distinct values in the order in which they first appear, and for each value the index of its distinct one.

Numerics: tflite/kernels/unique.cc
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, charge, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands, ensure_same_type
from oplet.schema.options import UniqueOptions

#: Bytes of scratch per value of the sort.
_SCRATCH = 40
#: The most values for which a dictionary is faster than a sort.
_FEW = 64
_TYPES = (TensorType.FLOAT32, TensorType.INT8, TensorType.UINT8, TensorType.INT16, TensorType.INT32, TensorType.INT64)


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 1, 2)
    source = node.inputs[0]
    values, numbers = node.outputs
    wanted = node.options(UniqueOptions).idx_out_type
    ensure_type(source, *_TYPES)
    ensure(source.ndim == 1, f"{source} must be a vector.")
    ensure(wanted in (TensorType.INT32, TensorType.INT64), f"idx_out_type is {wanted!r}; it must be INT32 or INT64.")
    ensure_same_type(values, source)
    ensure_type(numbers, wanted)
    context.set_dynamic(values)
    context.resize_tensor(numbers, source.shape)


def bind(context: Context, node: Node) -> Thunk:
    source, numbers, output = node.inputs[0].data, node.outputs[1].data, node.outputs[0]

    def few() -> bool:
        """Assign ids to a few values in Python; return False if any is NaN."""
        held = source.tolist()
        places: dict[float, int] = {}
        ranks = [places.setdefault(value, len(places)) for value in held]
        if any(value != value for value in places):
            return False
        context.resize_tensor(output, (len(places),))
        output.data[...] = list(places)
        numbers[...] = ranks
        return True

    is_few = source.size <= _FEW

    def run() -> None:
        if is_few and few():
            return
        charge(_SCRATCH * source.size)
        _, first, inverse = np.unique(source, return_index=True, return_inverse=True)
        order = np.argsort(first)
        ranks = np.empty_like(order)
        ranks[order] = np.arange(order.size)
        context.resize_tensor(output, order.shape)
        output.data[...] = source[first[order]]
        numbers[...] = ranks[inverse]

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=_TYPES)
