"""aeq.hadamard_rotation: the normalized Walsh-Hadamard transform of blocks of values, by butterflies.

Numerics: tflite/kernels/hadamard_rotation.cc
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.operands import ensure_operands
from oplet_builtin_ops.custom_options import CustomOptions
from oplet_builtin_ops.layers.program import Call, run_calls


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 1)
    source, output = node.inputs[0], node.outputs[0]
    ensure_type(source, TensorType.FLOAT32, TensorType.INT32)
    ensure_type(output, TensorType.FLOAT32, TensorType.INT32)
    ensure(source.ndim >= 2, f"{source} must have at least 2 dimensions.")
    size = CustomOptions(node).integer("hadamard_size")
    ensure(size >= 1, f"hadamard_size is {size}; it must be at least 1.")
    # The order of the values stays, so that the model may declare another shape of this size for the output.
    context.resize_tensor(output, output.shape if output.size == source.size else source.shape)
    context.add_temporary(node, (source.size,), TensorType.FLOAT32)
    node.prepared = size


def bind(context: Context, node: Node) -> Thunk:
    source, output, spare = (tensor.data for tensor in (node.inputs[0], node.outputs[0], node.temporaries[0]))
    size: int = node.prepared
    leading, features = source.shape[:-1] if source.ndim == 3 else source.shape[:1], source.shape[2 if source.ndim == 3 else 1]
    blocks = int(np.prod(leading)) * (features // size)
    # LiteRT computes with the bits of int32 values as if they were floats.
    target = output.reshape(-1).view(np.float32)
    calls: list[Call] = [(np.copyto, (target, source.reshape(-1).view(np.float32)))]
    if blocks and size & (size - 1) == 0:
        calls += _transform(target[: blocks * size], spare[: blocks * size], size)
    return run_calls(calls)


def _transform(values: Array, spare: Array, size: int) -> list[Call]:
    """Return numpy calls that transform each run of `size` values in place, by butterflies."""
    calls: list[Call] = []
    half = 1
    while half < size:
        pairs, sums = values.reshape(-1, 2, half), spare.reshape(-1, 2, half)[:, 0]
        first, second = pairs[:, 0], pairs[:, 1]
        calls += [(np.add, (first, second, sums)), (np.subtract, (first, second, second)), (np.copyto, (first, sums))]
        half *= 2
    return [*calls, (np.multiply, (values, np.array(1.0 / np.sqrt(size), np.float32), values))]


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(TensorType.FLOAT32, TensorType.INT32))
