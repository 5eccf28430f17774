"""STRIDED_SLICE, compiled: a single run-time position of some axes, the other axes whole."""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.lib.stride_tricks import as_strided

from oplet import Context, Node, NodeLimits, decline
from oplet.kernels.arrays import Shape
from oplet_builtin_ops.ops.strided_slice import REGISTRATION as BUILTIN
from oplet_builtin_ops.ops.strided_slice import taken_axes
from oplet_builtin_ops.shaping.bounds import refuse_begin
from oplet_compiled_ops.library.memory import Array, address, flat
from oplet_compiled_ops.overriding import Bind, Thunk, override
from oplet_compiled_ops.shaping.selecting import TAKE_POSITIONS
from oplet_compiled_ops.threads.failing import failing
from oplet_compiled_ops.threads.team import Step, ready, thunk

#: The most bytes of an output; for larger ones numpy is as fast.
_MOST = 1 << 20
#: The most axes around those that are copied as one piece.
_OUTER = 4


def _early(context: Context, node: Node) -> None:
    if all(tensor is not None and tensor.is_constant for tensor in node.inputs[1:]):
        decline("it is a copy.")


def plan(context: Context, node: Node) -> Bind:
    source, begin = node.inputs[:2]
    output = node.outputs[0]
    if output.is_dynamic or not output.size or output.dtype.hasobject or output.nbytes > _MOST:
        decline("its shape is not known, there is nothing to copy, or so much that numpy is as fast.")
    found = taken_axes(node)
    if found is None or begin.is_constant:
        decline("it takes more than single positions that only the run knows.")
    taken, index = found
    if not source.size:
        decline("it is to be refused.")
    # What the index leaves of an array that nobody reads.
    dtype = output.dtype
    whole = as_strided(np.empty(1, dtype), source.shape, _strides(source.shape, dtype.itemsize))
    left = whole[index]
    strides = _strides(output.shape, dtype.itemsize)
    axes = [axis for axis in zip(output.shape, left.strides, strides, strict=True) if axis[0] != 1]
    nbytes = dtype.itemsize
    while axes and axes[-1][1] == nbytes:
        nbytes *= axes.pop()[0]
    if len(axes) > _OUTER:
        decline("it has more axes than its loops.")
    lengths, reads, writes = zip(*[(1, 0, 0)] * (_OUTER - len(axes)), *axes)
    first = address(left) - address(whole)
    table = np.array([word for entry, axis in taken for word in (entry, source.shape[axis], whole.strides[axis])], np.int64)
    ready(TAKE_POSITIONS)

    def fail(mark: Array) -> None:
        entry, axis = taken[int(mark[0] - 1) // 3]
        begins = mark[1:].tolist()
        refuse_begin(source, begins, begins[entry], source.shape[axis])

    def bind() -> Thunk:
        x, y, mark = source.data, output.data, np.zeros(1 + begin.size, np.int64)
        step = Step(
            TAKE_POSITIONS,
            [(flat(begin.data), table, mark, address(x) + first, address(y), *lengths, nbytes, *reads, *writes)],
        )
        return failing(thunk([step], 1, x, y), mark, fail)

    return bind


def _strides(shape: Shape, nbytes: int) -> list[int]:
    """Return the byte strides of a C-contiguous array of this shape whose elements have `nbytes` bytes."""
    return [nbytes * prod(shape[axis + 1 :]) for axis in range(len(shape))]


REGISTRATION = override(BUILTIN, plan, NodeLimits(), _early)
