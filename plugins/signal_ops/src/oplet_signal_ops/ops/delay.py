"""SignalDelay: delays a streamed signal by `delay_length` samples along the last axis.

Numerics: signal/micro/kernels/delay.cc of tflite-micro.
"""

from __future__ import annotations

import math

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands
from oplet.kernels.options import integer
from oplet_signal_ops.nodes import add_state


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 1, 1)
    signal, output = node.inputs[0], node.outputs[0]
    ensure_type(signal, TensorType.INT16)
    ensure_type(output, TensorType.INT16)
    ensure(signal.ndim >= 1, f"{signal} must have at least one dimension.")
    delay = integer(node.custom_map(), "delay_length")
    context.resize_tensor(output, signal.shape)
    *outer, samples = signal.shape
    node.prepared = add_state(context, node, (math.prod(outer), delay + samples), TensorType.INT16)


def bind(context: Context, node: Node) -> Thunk:
    buffer = node.prepared.data
    rows, length = buffer.shape
    signal, output = node.inputs[0].data, node.outputs[0].data
    samples = signal.shape[-1]
    delay = length - samples
    source, target = signal.reshape(rows, samples), output.reshape(rows, samples)

    def run() -> None:
        buffer[:, delay:] = source
        target[...] = buffer[:, :samples]
        buffer[:, :delay] = buffer[:, samples:]

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, types=(TensorType.INT16,))
