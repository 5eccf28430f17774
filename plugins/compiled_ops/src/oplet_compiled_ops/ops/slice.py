"""SLICE, compiled: a constant size at a run-time position."""

from __future__ import annotations

from math import prod

import numpy as np

from oplet import Context, Node, NodeLimits, decline
from oplet.kernels.axes import read_ints
from oplet_builtin_ops.ops.slice import REGISTRATION as BUILTIN
from oplet_builtin_ops.shaping.bounds import box
from oplet_compiled_ops.library.memory import Array, address, flat
from oplet_compiled_ops.overriding import Bind, Thunk, override
from oplet_compiled_ops.shaping.selecting import POSITIONS, slice_kernel
from oplet_compiled_ops.threads.failing import failing
from oplet_compiled_ops.threads.team import Step, ready, thunk

#: The most bytes of an output; for larger ones numpy is as fast.
_MOST = 1 << 20
#: The most axes around those that are copied as one piece.
_OUTER = 4


def plan(context: Context, node: Node) -> Bind:
    source, begin, size = node.inputs
    output = node.outputs[0]
    if begin.is_constant or not size.is_constant or output.is_dynamic:
        decline("it is a copy, or its size is not constant.")
    sizes = read_ints(size)
    if not output.size or -1 in sizes or begin.shape != (source.ndim,) or tuple(sizes) != output.shape:
        decline("there is nothing to copy, or it is to be refused.")
    if output.dtype.hasobject or output.size * output.dtype.itemsize > _MOST or source.ndim > _OUTER + 1:
        decline("numpy is as fast for large copies, and copies what are no numbers.")
    if any(length > dim for length, dim in zip(sizes, source.shape)):
        decline("it is to be refused.")
    kernel = slice_kernel(POSITIONS[begin.type])
    ready(kernel)

    def fail(mark: Array) -> None:
        box(source, mark[1:].tolist(), sizes)

    def bind() -> Thunk:
        x, y = source.data, output.data
        last = source.ndim - 1  # the first of the axes that are copied as one piece
        while last > 0 and sizes[last] == source.shape[last]:
            last -= 1
        nbytes = prod(sizes[max(last, 0) :]) * output.dtype.itemsize
        missing = _OUTER - max(last, 0)
        lengths, reads, writes = (
            (*[some] * missing, *of[: max(last, 0)]) for some, of in ((1, sizes), (0, x.strides), (0, y.strides))
        )
        mark = np.zeros(1 + source.ndim, np.int64)
        most = np.array([dim - length for dim, length in zip(source.shape, sizes)], np.int64)
        arrays = flat(begin.data), most, np.array(x.strides, np.int64), mark
        step = Step(kernel, [(*arrays, address(x), address(y), *lengths, nbytes, *reads, *writes)])
        return failing(thunk([step], 1, x, y), mark, fail)

    return bind


REGISTRATION = override(BUILTIN, plan, NodeLimits(inputs=[[], list(POSITIONS)]))
