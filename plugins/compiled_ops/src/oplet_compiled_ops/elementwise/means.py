"""MEAN over adjacent axes: of integers as sums times a factor that includes the count, of floats as sums divided by the count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from oplet import Context, Node, TensorType, charge
from oplet.schema.enums import BuiltinOperator
from oplet.schema.options import MulOptions
from oplet_compiled_ops.elementwise.fixed_point import scaled
from oplet_compiled_ops.library.kernels import Kernel, kernel
from oplet_compiled_ops.library.lazy import emitted
from oplet_compiled_ops.library.memory import flat
from oplet_compiled_ops.overriding import Bind, Thunk, has_numpy_kernel
from oplet_compiled_ops.threads.splitting import WORTH_VALUES, cut, each, slots
from oplet_compiled_ops.threads.team import Step, ready, thunk

__all__ = ["MEAN", "MEAN_OF_COLUMNS", "MEAN_OF_LONG_COLUMNS", "plan_rows", "plan_scaled_sums", "squares_to_absorb"]

column_means = emitted("reductions:column_means")
squares, total = emitted("reductions:squares"), emitted("reductions:total")


@kernel("void(f4[::1], f4[::1], i8, f4, i8)")
def TOTALS(x, out, columns, share, squared):  # type: ignore[no-untyped-def]
    """Compute `share` times the sum of each row of `columns` floats of a flat array, or of their squares; with AVX-512 XNNPACK's."""
    for row in range(out.size):
        at = x.ctypes.data + 4 * row * columns
        out[row] = (squares(at, columns) if squared else total(at, columns)) * share


@kernel("void(f4[:,:,::1], f4[:,::1])")
def MEAN_OF_COLUMNS(x, out):  # type: ignore[no-untyped-def]
    """Compute the mean over the middle axis of a float32 array (outer, rows, columns), adding rows in order."""
    share = np.float32(1) / np.float32(x.shape[1])
    for outer in range(x.shape[0]):
        target, first = out[outer], x[outer, 0]
        for i in range(target.size):
            target[i] = first[i]
        for row in range(1, x.shape[1]):
            source = x[outer, row]
            for i in range(target.size):
                target[i] += source[i]
        for i in range(target.size):
            target[i] *= share


@kernel("void(f4[:,:,::1], f4[:,::1])")
def MEAN_OF_LONG_COLUMNS(x, out):  # type: ignore[no-untyped-def]
    """Compute the mean over the middle axis of a float32 array (outer, rows, columns) of many rows, by four interleaved partial
    sums.
    """
    for outer in range(x.shape[0]):
        column_means(x[outer].ctypes.data, x.shape[1], x.shape[2], out[outer].ctypes.data)


def _mean(x, out, sums, offset, multiplier, left, half, below, right, zero, low, high):  # type: ignore[no-untyped-def]
    for outer in range(x.shape[0]):
        for i in range(sums.size):
            sums[i] = -offset
        for row in range(x.shape[1]):
            source = x[outer, row]
            for i in range(sums.size):
                sums[i] += source[i]
        target = out[outer]
        for i in range(sums.size):
            target[i] = min(max(scaled(sums[i], multiplier, left, half, below, right) + zero, low), high)


_CODES = {TensorType.INT8: "i1", TensorType.UINT8: "u1", TensorType.INT16: "i2"}
#: Of an array (outer, reduced, inner), with scratch for the sums of `inner` elements.
MEAN = {
    type: Kernel(_mean, f"void({code}[:,:,::1], {code}[:,::1], i4[::1], i8, i8, i8, i8, i8, i8, i8, i8, i8)")
    for type, code in _CODES.items()
}


def squares_to_absorb(node: Node, makers: Sequence[Node]) -> Sequence[Node]:
    """Return, in a list, the node among `makers` that squares the floats that `node` sums, as XNNPACK sums these; an empty one for none."""
    return [
        maker
        for maker in makers
        if maker.outputs[0] is node.inputs[0]
        and maker.inputs[0] is maker.inputs[-1]
        and maker.inputs[0].type is TensorType.FLOAT32
        and has_numpy_kernel(maker)
        and (
            maker.op is BuiltinOperator.SQUARE
            or (maker.op is BuiltinOperator.MUL and not maker.options(MulOptions).fused_activation_function)
        )
    ]


def plan_rows(context: Context, node: Node, columns: int, share: float) -> Bind:
    """Plan `share` times the sums of float32, or of the squares of floats, over the last axes, whose product of lengths is `columns`."""
    source, output = (node.absorbed[0] if node.absorbed else node).inputs[0], node.outputs[0]
    ready(TOTALS)
    ranges = cut(output.size, source.size // WORTH_VALUES, context.num_threads)

    def bind() -> Thunk:
        x, y = flat(source.data), flat(output.data)
        more = columns, share, len(node.absorbed)
        parts = each(ranges, lambda some, _: (x[some[0] * columns : some[1] * columns], y[slice(*some)], *more))
        return thunk([Step(TOTALS, parts)], context.num_threads)

    return bind


def plan_scaled_sums(context: Context, node: Node, kernel: Kernel, shape: tuple[int, int, int], constants: Sequence[Any]) -> Bind:
    """Plan a node whose kernel sums integers over adjacent axes and rescales the sums.

    Args:
        context: the kernel's context.
        kernel: takes the input (outer, reduced, inner), the output (outer, inner), scratch for `inner` sums, and the constants.
        shape: (outer, reduced, inner): the product of the lengths before, along and after the reduced axes.
        constants: the kernel's last arguments.
    """
    source, output = node.inputs[0], node.outputs[0]
    outer, count, inner = shape
    ready(kernel)
    ranges = cut(outer, source.size // WORTH_VALUES, context.num_threads)
    charge(4 * inner * slots(ranges))

    def bind() -> Thunk:
        x, y = source.data.reshape(outer, count, inner), output.data.reshape(outer, inner)
        sums = [np.empty(inner, np.int32) for _ in range(slots(ranges))]
        parts = each(ranges, lambda some, slot: (x[slice(*some)], y[slice(*some)], sums[slot], *constants))
        return thunk([Step(kernel, parts)], context.num_threads)

    return bind
