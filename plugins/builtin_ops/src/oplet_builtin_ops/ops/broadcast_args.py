"""BROADCAST_ARGS: the shape to which two shapes broadcast. Numerics: tflite/kernels/internal/reference/broadcast_args.h"""

from __future__ import annotations

from functools import partial
from itertools import zip_longest

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.axes import ensure_few
from oplet.kernels.operands import ensure_operands, ensure_same_type

_TYPES = (TensorType.INT32, TensorType.INT64)


#: The most dimensions for which Python's integers are faster than arrays.
_FEW = 64


def _broadcast_few(first: Array, second: Array, output: Array) -> None:
    result = []
    for a, b in zip_longest(reversed(first.tolist()), reversed(second.tolist()), fillvalue=1):
        if a != b and a != 1 and b != 1:
            ensure(False, f"the shapes {first.tolist()} and {second.tolist()} do not broadcast together.")
        result.append(b if a == 1 else a)
    output[::-1] = result


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2)
    for shape in node.inputs:
        ensure_type(shape, *_TYPES)
        ensure_same_type(shape, node.outputs[0])
        ensure(shape.ndim == 1, f"{shape} must be a vector, a shape.")
        ensure_few(shape)
    context.resize_tensor(node.outputs[0], (max(shape.size for shape in node.inputs),))


def bind(context: Context, node: Node) -> Thunk:
    output = node.outputs[0].data
    shapes = [shape.data for shape in node.inputs]
    if output.size <= _FEW:
        return partial(_broadcast_few, shapes[0], shapes[1], output)
    # The shorter shape is padded with leading ones.
    padded = np.ones((2, output.size), output.dtype)
    tails = [row[output.size - shape.size :] for row, shape in zip(padded, shapes)]
    first, second = padded

    def run() -> None:
        for tail, shape in zip(tails, shapes):
            tail[...] = shape
        ensure(
            ((first == second) | (first == 1) | (second == 1)).all(),
            lambda: f"the shapes {shapes[0].tolist()} and {shapes[1].tolist()} do not broadcast together.",
        )
        output[...] = np.where(first == 1, second, first)

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=_TYPES)
