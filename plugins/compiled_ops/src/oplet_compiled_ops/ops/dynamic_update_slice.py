"""DYNAMIC_UPDATE_SLICE, compiled: a block that is written at a run-time position, into the tensor itself or into a copy of it."""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, NodeLimits, decline
from oplet.kernels.arrays import Shape, copier
from oplet_builtin_ops.ops.dynamic_update_slice import REGISTRATION as BUILTIN
from oplet_compiled_ops.library.memory import address, flat
from oplet_compiled_ops.overriding import Bind, Thunk, override
from oplet_compiled_ops.shaping import COPY, SIZES, copy_arguments
from oplet_compiled_ops.shaping.selecting import POSITIONS, update_kernel
from oplet_compiled_ops.threads.splitting import cut, each
from oplet_compiled_ops.threads.team import Step, ready, thunk

#: The least numbers of a part of a copy.
_WORTH = 1 << 16
#: The loops around the bytes that are copied as one piece.
_LOOPS = 4


def plan(context: Context, node: Node) -> Bind:
    operand, update, starts = node.inputs
    output = node.outputs[0]
    if not update.size or output.is_dynamic or output.dtype.itemsize not in SIZES:
        decline("there is nothing to write, or its numbers are too large.")
    size = output.dtype.itemsize
    axes = _axes(update.shape, operand.shape, size)
    if len(axes) > _LOOPS:
        decline("its block is in more pieces than its loops know.")
    axes = [(1, 0, 0)] * (_LOOPS - len(axes)) + axes
    nbytes = size
    if axes[-1][1:] == (size, size):
        nbytes, axes = axes[-1][0] * size, [(1, 0, 0), *axes[:-1]]
    lengths, reads, writes = zip(*axes)
    kernel = update_kernel(POSITIONS[starts.type])
    ready(kernel)
    node.in_place = [operand]

    def bind() -> Thunk:
        x, block, y = operand.data, update.data, output.data
        steps = []
        if copier(y, x).pairs:
            whole, copied = flat(x), flat(y)
            ranges = cut(whole.size, whole.size // _WORTH, context.num_threads)
            steps.append(
                Step(COPY, each(ranges, lambda some, _: copy_arguments(copied[slice(*some)], whole[slice(*some)]) or ()))
            )
        most = np.array([dim - length for dim, length in zip(x.shape, block.shape)], np.int64)
        places = flat(starts.data), most, np.array(y.strides, np.int64)
        steps.append(Step(kernel, [(*places, address(block), address(y), *lengths, nbytes, *reads, *writes)]))
        return thunk(steps, context.num_threads, x, block, y)

    return bind


def _axes(block: Shape, whole: Shape, size: int) -> list[tuple[int, int, int]]:
    """Return the loops that go over a block of a tensor whose numbers have `size` bytes: lengths, and the byte strides of both."""
    axes: list[tuple[int, int, int]] = []
    read = write = size
    for length, dim in zip(reversed(block), reversed(whole)):
        if axes and (read, write) == (axes[0][0] * axes[0][1], axes[0][0] * axes[0][2]):
            axes[0] = axes[0][0] * length, *axes[0][1:]
        elif length > 1:
            axes.insert(0, (length, read, write))
        read, write = read * length, write * dim
    return axes


REGISTRATION = override(BUILTIN, plan, NodeLimits(inputs=[[], [], list(POSITIONS)]))
