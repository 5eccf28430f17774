"""Quantized unary ops: look-ups in the table of all results that the numpy kernel made."""

from __future__ import annotations

from itertools import product

import numpy as np

from oplet import Context, Node, TensorType, decline
from oplet_builtin_ops.arithmetic.lookup import refuse_below
from oplet_compiled_ops.library.kernels import Kernel, family
from oplet_compiled_ops.library.memory import Array, flat
from oplet_compiled_ops.overriding import Bind, Thunk
from oplet_compiled_ops.threads.failing import failing
from oplet_compiled_ops.threads.splitting import WORTH_VALUES, cut, each
from oplet_compiled_ops.threads.team import Step, ready, thunk

__all__ = ["TABLED", "plan_table"]

#: The types that have so few values that a table lists all results.
TABLED = (TensorType.INT8, TensorType.UINT8, TensorType.INT16)
#: The most numbers of a node whose values are checked: they are one part of work.
_MOST = 1 << 20


@family(lambda: product(("u1", "u2"), ("u1", "u2", "u4")))
def _kernel(index: str, value: str) -> Kernel:
    """Build the kernel out[i] = table[x[i]]; `index` and `value` are numba's names of the unsigned types of `x` and of the table
    ("u1").
    """

    def look_up(x, out, table):  # type: ignore[no-untyped-def]
        for i in range(out.size):
            out[i] = table[x[i]]

    return Kernel(look_up, f"void({index}[::1], {value}[::1], {value}[::1])")


@family(lambda: product(("i1", "i2"), ("u1", "u2", "u4")))
def _checking_kernel(index: str, value: str) -> Kernel:
    """Build the look-up kernel for signed numbers that must not be below its last argument, `least`.

    If one is, its error flag `mark` is set to (1, the lowest number), and nothing is looked up. `index` and `value` are numba's
    names of the types of the numbers and of the table.
    """

    def look_up_checked(x, out, table, mark, least):  # type: ignore[no-untyped-def]
        lowest = x[0]
        for i in range(1, x.size):
            lowest = min(lowest, x[i])
        if lowest < least:
            mark[0], mark[1] = 1, lowest
            return
        for i in range(out.size):
            out[i] = table[np.int64(x[i]) & (table.size - 1)]

    return Kernel(look_up_checked, f"void({index}[::1], {value}[::1], {value}[::1], i8[::1], i8)")


def plan_table(context: Context, node: Node, positive: bool = False) -> Bind:
    """Plan a quantized unary node, whose table of all results is in `node.prepared`, where the numpy kernel's `prepare` put it.

    Args:
        positive: whether a value below the zero point (a negative number) is an error.
    """
    source, output, table = node.inputs[0], node.outputs[0], node.prepared
    if not isinstance(table, np.ndarray) or source.type not in TABLED or table.shape != (1 << 8 * source.dtype.itemsize,):
        decline("it has no table of all values.")
    if not source.size:
        decline("there is nothing to compute.")
    size, bits = source.dtype.itemsize, f"u{output.dtype.itemsize}"
    results = np.ascontiguousarray(table).view(bits)
    if output.dtype.itemsize == size:
        node.in_place = [source]  # a look-up is no loop that compilers vectorize
    if positive:
        return _plan_checked(node, results)
    kernel = _kernel(f"u{size}", bits)
    ready(kernel)
    ranges = cut(source.size, source.size // WORTH_VALUES, context.num_threads)

    def bind() -> Thunk:
        x, out = flat(source.data).view(f"u{size}"), flat(output.data).view(bits)
        return thunk(
            [Step(kernel, each(ranges, lambda some, _: (x[slice(*some)], out[slice(*some)], results)))], context.num_threads
        )

    return bind


def _plan_checked(node: Node, results: Array) -> Bind:
    source, output = node.inputs[0], node.outputs[0]
    if source.size > _MOST:
        decline("numpy is as fast for so many numbers.")
    kernel = _checking_kernel(f"i{source.dtype.itemsize}", f"u{output.dtype.itemsize}")
    ready(kernel)

    def fail(mark: Array) -> None:
        refuse_below(source, int(mark[1]))

    def bind() -> Thunk:
        mark: Array = np.zeros(2, np.int64)
        arrays = flat(source.data), flat(output.data).view(results.dtype), results, mark
        return failing(thunk([Step(kernel, [(*arrays, source.zero_point)])]), mark, fail)

    return bind
