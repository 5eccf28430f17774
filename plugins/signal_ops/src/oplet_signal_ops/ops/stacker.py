"""SignalStacker: concatenates several successive frames, as the input of a network with temporal context.

A stack is the frames to the left of one frame, that frame, and those to the right; the next one is `stacker_step` frames
later. Left of the very first frame there are copies of it. Until a stack is complete the second output is false, and the first
one zeros (which is what the op's documentation says; tflite-micro leaves it as the memory is).

Numerics: signal/micro/kernels/stacker.cc of tflite-micro.
"""

from __future__ import annotations

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands, ensure_vector
from oplet.kernels.options import integer
from oplet_signal_ops.nodes import add_state


def prepare(context: Context, node: Node) -> None:
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


def bind(context: Context, node: Node) -> Thunk:
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


REGISTRATION = Registration(
    prepare=prepare,
    bind=bind,
    types=(TensorType.INT16,),
    differences="A stack that is not complete yet is zeros; tflite-micro leaves it as the memory is.",
)
