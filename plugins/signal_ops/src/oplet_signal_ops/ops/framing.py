"""Streamed signals in frames: cut, stacked, put together again, delayed.

SignalFramer: splits a streamed signal into overlapping frames of `frame_size`, one every `frame_step` samples.

The node remembers the samples that frames to come need. Without the option `prefill`, which puts zeros before the signal, the
first invokes may have too few samples for a frame: the second output is false then, and the missing frames are zeros (as the
op's documentation says; tflite-micro leaves them as the memory is).

Numerics: signal/micro/kernels/framer.cc of tflite-micro.

SignalStacker: concatenates several successive frames, as the input of a network with temporal context.

A stack is the frames to the left of one frame, that frame, and those to the right; the next one is `stacker_step` frames
later. Left of the very first frame there are copies of it. Until a stack is complete the second output is false, and the first
one zeros (which is what the op's documentation says; tflite-micro leaves it as the memory is).

Numerics: signal/micro/kernels/stacker.cc of tflite-micro.

SignalOverlapAdd: adds up overlapping frames to a streamed signal, one frame every `frame_step` samples.

The node remembers the sums to which frames to come will add. Every int16 sum is limited to int16 at once.

Numerics: signal/src/overlap_add.cc of tflite-micro.

SignalDelay: delays a streamed signal by `delay_length` samples along the last axis.

Numerics: signal/micro/kernels/delay.cc of tflite-micro.
"""

from __future__ import annotations

import math

import numpy as np

from oplet import Context, Node, Registration, TensorType, checkpoint, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.operands import ensure_operands, ensure_vector
from oplet.kernels.options import flag, integer
from oplet_signal_ops.attributes import ensure_declared_type
from oplet_signal_ops.nodes import add_state


def prepare_framer(context: Context, node: Node) -> None:
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


def bind_framer(context: Context, node: Node) -> Thunk:
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


FRAMER = Registration(
    prepare=prepare_framer,
    bind=bind_framer,
    types=(TensorType.INT16,),
    differences="Frames for which there are too few samples get zeros; tflite-micro leaves them as the memory is.",
)


def prepare_stacker(context: Context, node: Node) -> None:
    ensure_operands(node, 1, 2)
    frame, (stack, valid) = node.inputs[0], node.outputs
    ensure_vector(frame, TensorType.INT16)
    ensure_type(stack, TensorType.INT16)
    ensure_type(valid, TensorType.BOOL)
    options = node.custom_map()
    channels = integer(options, "num_channels", least=1)
    ensure(frame.size == channels, f"{frame} must have the {channels} channels that the options name.")
    left, right = (integer(options, f"stacker_{side}_context") for side in ("left", "right"))
    count = left + 1 + right
    step = integer(options, "stacker_step", least=1, most=count)
    context.resize_tensor(stack, (count * channels,))
    context.resize_tensor(valid, ())
    recent = add_state(context, node, (count, channels), TensorType.INT16)
    # How many frames the next stack has already, and whether there has been a first frame.
    progress = add_state(context, node, (2,), TensorType.INT32)
    node.prepared = left, step, recent, progress


def bind_stacker(context: Context, node: Node) -> Thunk:
    left, step, recent, progress = node.prepared
    frames, state = recent.data, progress.data
    count = len(frames)
    frame, stack, valid = node.inputs[0].data, node.outputs[0].data, node.outputs[1].data
    target = stack.reshape(frames.shape)

    def run() -> None:
        available, started = state.tolist()
        frames[:-1] = frames[1:]
        frames[-1] = frame
        available += 1
        if not started:
            frames[count - 1 - left :] = frame
            available += left
        complete = available == count
        if complete:
            target[...] = frames
            available -= step
        else:
            target.fill(0)
        valid.fill(complete)
        state[:] = available, 1

    return run


STACKER = Registration(
    prepare=prepare_stacker,
    bind=bind_stacker,
    types=(TensorType.INT16,),
    differences="A stack that is not complete yet is zeros; tflite-micro leaves it as the memory is.",
)


_TYPES = (TensorType.FLOAT32, TensorType.INT16)


def prepare_overlap_add(context: Context, node: Node) -> None:
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


def bind_overlap_add(context: Context, node: Node) -> Thunk:
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


OVERLAP_ADD = Registration(prepare=prepare_overlap_add, bind=bind_overlap_add, types=_TYPES)


def prepare_delay(context: Context, node: Node) -> None:
    ensure_operands(node, 1, 1)
    signal, output = node.inputs[0], node.outputs[0]
    ensure_type(signal, TensorType.INT16)
    ensure_type(output, TensorType.INT16)
    ensure(signal.ndim >= 1, f"{signal} must have at least one dimension.")
    delay = integer(node.custom_map(), "delay_length")
    context.resize_tensor(output, signal.shape)
    *outer, samples = signal.shape
    node.prepared = add_state(context, node, (math.prod(outer), delay + samples), TensorType.INT16)


def bind_delay(context: Context, node: Node) -> Thunk:
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


DELAY = Registration(prepare=prepare_delay, bind=bind_delay, types=(TensorType.INT16,))
