"""SignalWindow: the signal times window weights, shifted right by `shift` and saturated to int16.

The window repeats along the signal, usually once per row.

Numerics: signal/src/window.cc of tflite-micro.
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands, ensure_vector
from oplet.kernels.options import integer


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2, 1)
    (signal, weights), output = node.inputs, node.outputs[0]
    ensure_type(signal, TensorType.INT16)
    ensure_vector(weights, TensorType.INT16)
    ensure_type(output, TensorType.INT16)
    ensure(signal.ndim >= 1, f"{signal} must have at least one dimension.")
    ensure(weights.size and signal.size % weights.size == 0, f"the window {weights} must fit into the signal {signal} evenly.")
    shift = integer(node.custom_map(), "shift", most=31)
    context.resize_tensor(output, signal.shape)
    rows = signal.size // weights.size
    node.prepared = shift, context.add_temporary(node, (rows, weights.size), TensorType.INT32)


def bind(context: Context, node: Node) -> Thunk:
    shift, scratch = node.prepared
    product = scratch.data
    weights = node.inputs[1].data
    source, target = (tensor.data.reshape(product.shape) for tensor in (node.inputs[0], node.outputs[0]))

    def run() -> None:
        np.multiply(source, weights, product, dtype=np.int32)
        np.right_shift(product, shift, product)
        np.maximum(product, -0x8000, out=product)
        np.minimum(product, 0x7FFF, out=product)
        np.copyto(target, product, casting="unsafe")

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(TensorType.INT16,))
