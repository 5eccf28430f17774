"""BITCAST: the same bytes as another type. A dimension is added or removed if the sizes of the types differ.

Numerics: tflite/kernels/bitcast.cc
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk, copier
from oplet.kernels.operands import ensure_operands
from oplet_builtin_ops.types import NUMBERS

TYPES = (*NUMBERS, TensorType.COMPLEX128)


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 1)
    source, output = node.inputs[0], node.outputs[0]
    ensure_type(source, *TYPES)
    ensure_type(output, *TYPES)
    given, wanted = source.dtype.itemsize, output.dtype.itemsize
    shape = source.shape
    if given > wanted:
        shape = (*shape, given // wanted)
    elif given < wanted:
        count = wanted // given
        ensure(shape[-1:] == (count,), f"the last dimension of {source} must be {count} to become {output.type.name}.")
        shape = shape[:-1]
    context.resize_tensor(output, shape)
    node.in_place = [source]


def bind(context: Context, node: Node) -> Thunk:
    source, output = node.inputs[0].data, node.outputs[0].data
    return copier(output.reshape(-1).view(np.uint8), source.reshape(-1).view(np.uint8))


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=TYPES)
