"""SignalFramer: splits a streamed signal into overlapping frames of `frame_size`, one every `frame_step` samples.

The node remembers the samples that frames to come need. Without the option `prefill`, which puts zeros before the signal, the
first invokes may have too few samples for a frame: the second output is false then, and the missing frames are zeros (as the
op's documentation says; tflite-micro leaves them as the memory is).

Numerics: signal/micro/kernels/framer.cc of tflite-micro.
"""

from __future__ import annotations

import math

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands
from oplet.kernels.options import flag, integer
from oplet_signal_ops.nodes import add_state


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 1, 2)
    signal, (frames, valid) = node.inputs[0], node.outputs
    ensure_type(signal, TensorType.INT16)
    ensure_type(frames, TensorType.INT16)
    ensure_type(valid, TensorType.BOOL)
    options = node.custom_map()
    size, step = (integer(options, key, least=1) for key in ("frame_size", "frame_step"))
    prefill = flag(options, "prefill")
    ensure(not prefill or step <= size, f"frames of {size} samples, one every {step}, leave nothing to prefill.")
    ensure(signal.ndim >= 1, f"{signal} must have at least one dimension.")
    *outer, samples = signal.shape
    ensure(
        samples >= step and samples % step == 0,
        f"{signal} must have a multiple of the {step} samples from one frame to the next.",
    )
    context.resize_tensor(frames, (*outer, samples // step, size))
    context.resize_tensor(valid, ())
    # The first frame ends with this step. Frames begin so many samples before the end of the step that they end with.
    first = 1 if prefill else -(-size // step)
    reach = size if prefill else first * step
    rows = math.prod(outer)
    recent = add_state(context, node, (rows, reach - step + samples), TensorType.INT16)
    steps = add_state(context, node, (), TensorType.INT32)
    node.prepared = step, first, recent, steps


def bind(context: Context, node: Node) -> Thunk:
    step, first, recent, steps = node.prepared
    frames, valid = (tensor.data for tensor in node.outputs)
    count, size = frames.shape[-2:]
    samples = count * step
    buffer, done = recent.data, steps.data
    rows, length = buffer.shape
    source, target = node.inputs[0].data.reshape(rows, samples), frames.reshape(rows, count, size)
    windows = np.lib.stride_tricks.sliding_window_view(buffer, size, axis=1)[:, ::step][:, :count]

    def run() -> None:
        buffer[:, length - samples :] = source
        np.copyto(target, windows)
        missing = first - 1 - int(done)
        if missing > 0:
            target[:, :missing] = 0
        valid.fill(missing <= 0)
        done.fill(min(int(done) + count, first))
        buffer[:, : length - samples] = buffer[:, samples:]

    return run


REGISTRATION = Registration(
    prepare=prepare,
    bind=bind,
    types=(TensorType.INT16,),
    differences="Frames for which there are too few samples get zeros; tflite-micro leaves them as the memory is.",
)
