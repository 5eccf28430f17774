"""SignalOverlapAdd: adds up overlapping frames to a streamed signal, one frame every `frame_step` samples.

The node remembers the sums to which frames to come will add. Every int16 sum is limited to int16 at once.

Numerics: signal/src/overlap_add.cc of tflite-micro.
"""

from __future__ import annotations

import math

import numpy as np

from oplet import Context, Node, Registration, TensorType, checkpoint, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.operands import ensure_operands
from oplet.kernels.options import integer
from oplet_signal_ops.attributes import ensure_declared_type
from oplet_signal_ops.nodes import add_state

_TYPES = (TensorType.FLOAT32, TensorType.INT16)


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 1, 1)
    frames, signal = node.inputs[0], node.outputs[0]
    ensure_type(frames, *_TYPES)
    ensure_type(signal, frames.type)
    options = node.custom_map()
    ensure_declared_type(options, frames, *_TYPES)
    ensure(frames.ndim >= 2, f"{frames} must have frames of samples: at least two dimensions.")
    *outer, count, size = frames.shape
    step = integer(options, "frame_step", least=1)
    ensure(step <= size, f"the option 'frame_step' is {step}, but the frames {frames} have {size} samples.")
    context.resize_tensor(signal, (*outer, count * step))
    node.prepared = step, add_state(context, node, (math.prod(outer), size), frames.type)


def bind(context: Context, node: Node) -> Thunk:
    step, sums = node.prepared
    buffer = sums.data
    rows, size = buffer.shape
    count = node.inputs[0].shape[-2]
    frames = node.inputs[0].data.reshape(rows, count, size)
    signal = node.outputs[0].data.reshape(rows, count, step)
    add = _add_limited if buffer.dtype == np.int16 else _add

    def run() -> None:
        for number in range(count):
            checkpoint()
            frame, samples = frames[:, number], signal[:, number]
            add(buffer, frame)
            samples[...] = buffer[:, :step]
            buffer[:, : size - step] = buffer[:, step:]
            buffer[:, size - step :] = 0

    return run


def _add(buffer: Array, frame: Array) -> None:
    np.add(buffer, frame, buffer)


def _add_limited(buffer: Array, frame: Array) -> None:
    total = np.add(buffer, frame, dtype=np.int32)
    np.maximum(total, -0x8000, out=total)
    np.minimum(total, 0x7FFF, out=buffer, casting="unsafe")


REGISTRATION = Registration(prepare=prepare, bind=bind, types=_TYPES)
