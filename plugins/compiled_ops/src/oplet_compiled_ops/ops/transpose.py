"""TRANSPOSE, compiled: large tensors of one- or four-byte numbers with at most four axes, after merging of axes that stay
adjacent.
"""

from __future__ import annotations

from math import prod

from oplet import Context, Node, NodeLimits, decline
from oplet.kernels.axes import read_ints
from oplet_builtin_ops.ops.transpose import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise.flat import worth_sharing
from oplet_compiled_ops.library.memory import flat
from oplet_compiled_ops.overriding import Bind, Thunk, override
from oplet_compiled_ops.shaping.transposing import COPY_ROWS, TURN_SQUARES
from oplet_compiled_ops.threads.splitting import WORTH_VALUES, cut, each
from oplet_compiled_ops.threads.team import Step, ready, thunk

#: The least numbers for which a compiled kernel is faster, also on one thread.
_LARGE = 4096
#: The columns that become rows at a time; the second number is for three planes that become channels.
_STRIP, _LONG_STRIP = 16, 1024
#: For no more rows or columns than this, numpy is as fast.
_FEW = 4


def _axes(shape: tuple[int, ...], perm: list[int]) -> list[tuple[int, int]]:
    """Return (length, stride in the input, in elements) of each output axis; axes that stay neighbours are merged into one."""
    axes: list[tuple[int, int]] = []
    for axis in perm:
        length, stride = shape[axis], prod(shape[axis + 1 :])
        if length == 1:
            continue
        if axes and axes[-1][1] == length * stride:
            axes[-1] = axes[-1][0] * length, stride
        else:
            axes.append((length, stride))
    return axes


def plan(context: Context, node: Node) -> Bind:
    source, perm = node.inputs
    output = node.outputs[0]
    size = source.dtype.itemsize
    if source.size < _LARGE or size not in COPY_ROWS:
        decline("numpy is as fast for small tensors, and for numbers of this size.")
    axes = _axes(source.shape, [axis % source.ndim for axis in read_ints(perm)])
    if not 2 <= len(axes) <= 4:
        decline("its axes part in fewer than two or more than four.")
    axes = [(1, 0)] * (4 - len(axes)) + axes
    *others, (length, stride) = axes
    if stride == 1:
        if not worth_sharing(context, source.size):
            decline("numpy copies whole rows as fast.")
        kernel, count = COPY_ROWS[size], output.size // length
        counts = (length, *(n for n, _ in others[1:]), *(step for _, step in others))
    else:
        kernel = TURN_SQUARES[size]
        steps = [prod(n for n, _ in axes[place + 1 :]) for place in range(3)]
        [(columns, column_stride)] = [(n, step) for (n, from_), step in zip(others, steps) if from_ == 1 and n > 1]
        (first, *from_first), (second, *from_second) = [
            (n, from_, step) for (n, from_), step in zip(others, steps) if from_ != 1 or n == 1
        ]
        planes = length == column_stride == 3
        if columns <= _FEW or (length <= _FEW and not planes):
            decline("numpy is as fast for so few rows or columns.")
        strip = _LONG_STRIP if planes else _STRIP
        count = first * second * -(-columns // strip)
        strides = from_first[0], from_second[0], from_first[1], from_second[1]
        counts = (strip, second, *strides, length, stride, columns, column_stride)
    ready(kernel)
    ranges = cut(count, source.size // WORTH_VALUES, context.num_threads)

    def bind() -> Thunk:
        x, out = (flat(tensor.data).view(f"u{size}") for tensor in (source, output))
        return thunk([Step(kernel, each(ranges, lambda some, _: (x, out, *some, *counts)))], context.num_threads)

    return bind


REGISTRATION = override(BUILTIN, plan, NodeLimits(constant=[1]))
