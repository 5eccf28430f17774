"""REDUCE_WINDOW and STABLEHLO_REDUCE_WINDOW: windows of any rank slide over a tensor, each reduced to one value.

Windows are reduced along one axis after the other, which takes as many passes as the window is long along all axes together.

Numerics: tflite/kernels/stablehlo_reduce_window.cc
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from oplet import Context, Node, Tensor, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Array, Shape, Thunk
from oplet.kernels.axes import along
from oplet.kernels.operands import ensure_same_type
from oplet.records import Row
from oplet_builtin_ops.layers import MANY_TAPS
from oplet_builtin_ops.layers.program import Call, run_calls, run_program

__all__ = ["REDUCIBLE_TYPES", "WindowAxis", "add_fold_scratch", "ensure_reducible", "fold_windows", "window_axes"]

REDUCIBLE_TYPES = (
    TensorType.FLOAT32,
    TensorType.FLOAT64,
    TensorType.BOOL,
    TensorType.INT8,
    TensorType.INT16,
    TensorType.INT32,
    TensorType.INT64,
    TensorType.UINT8,
)


class WindowAxis(Row):
    """The windows along one axis.

    Attributes:
        size: the size of the input along the axis.
        taps: the number of values of a window.
        stride: the distance between windows.
        dilation: the distance between taps.
    """

    size: int
    taps: int
    stride: int
    dilation: int

    @property
    def out(self) -> int:
        """The number of windows along the axis."""
        span = (self.taps - 1) * self.dilation + 1
        return 0 if self.size < span else (self.size - span) // self.stride + 1

    def seen(self, tap: int) -> slice:
        """Return the slice of input positions that all windows read at one position (tap) of a window."""
        start = tap * self.dilation
        return slice(start, start + (self.out - 1) * self.stride + 1, self.stride)


def ensure_reducible(source: Tensor, initial: Tensor, output: Tensor) -> None:
    """Check the operands' types and shapes as LiteRT does.

    Raises:
        EnsureError: the types or shapes are invalid.
    """
    ensure_type(source, *REDUCIBLE_TYPES)
    ensure_same_type(source, output)
    ensure_same_type(source, initial)
    ensure(1 <= source.ndim <= 6, f"{source} must have 1 to 6 dimensions.")
    ensure(initial.size >= 1, f"the initial value {initial} must hold a value.")


def window_axes(shape: Shape, taps: list[int], strides: list[int], dilations: list[int]) -> list[WindowAxis]:
    """Check a window's parameters and return the windows along each axis.

    Raises:
        EnsureError: there is not one number for each axis, or one is below 1.
    """
    for name, numbers in (("dimensions", taps), ("strides", strides), ("dilations", dilations)):
        ensure(
            len(numbers) == len(shape) and min(numbers) > 0,
            f"the window {name} {numbers} must be {len(shape)} numbers, one for each axis, all above zero.",
        )
    return [WindowAxis(*numbers) for numbers in zip(shape, taps, strides, dilations)]


def _stages(axes: list[WindowAxis]) -> list[tuple[int, WindowAxis]]:
    """Return (position, axis) of the axes that need work, last first, so that each pass shrinks the input of the next."""
    return [(i, axis) for i, axis in reversed(list(enumerate(axes))) if axis.taps > 1 or axis.out != axis.size]


def add_fold_scratch(context: Context, node: Node, axes: list[WindowAxis], type: TensorType) -> list[Tensor]:
    """Request scratch memory for the intermediate results of `fold_windows` between two axes."""
    shape = [axis.size for axis in axes]
    scratch = []
    for position, axis in _stages(axes)[:-1]:
        shape[position] = axis.out
        scratch.append(context.add_temporary(node, tuple(shape), type))
    return scratch


def fold_windows(
    ufunc: np.ufunc, source: Array, axes: list[WindowAxis], initial: Array, scratch: list[Tensor], target: Array
) -> Thunk:
    """Return a function that reduces every window of `source` into `target`.

    Args:
        ufunc: the reduction, of two operands.
        source: the input.
        axes: the windows along each axis.
        initial: an array whose first value is the initial value of each window.
        scratch: the memory that `add_fold_scratch` requested.
        target: the output.
    """
    if not target.size:
        return run_calls([])
    stages = _stages(axes)

    def calls() -> Iterator[Call]:
        seen = source
        for number, (position, axis) in enumerate(stages):
            folded = target if number == len(stages) - 1 else scratch[number].data
            yield from _fold_calls(ufunc, seen, position, axis, folded)
            seen = folded
        yield partial(ufunc, out=target), (initial.reshape(-1)[:1].reshape(()), seen)

    return run_program(calls)


def _fold_calls(ufunc: np.ufunc, source: Array, position: int, axis: WindowAxis, folded: Array) -> Iterator[Call]:
    """Yield numpy calls that reduce along one axis, tap by tap for all windows, or window by window if windows are long."""
    if axis.taps > max(MANY_TAPS, axis.out):
        for number in range(axis.out):
            window = slice(number * axis.stride, number * axis.stride + (axis.taps - 1) * axis.dilation + 1, axis.dilation)
            yield ufunc.reduce, (source[along(position, window)], position, folded.dtype, folded[along(position, number)])
        return
    first = source[along(position, axis.seen(0))]
    if axis.taps == 1:
        yield np.copyto, (folded, first)
        return
    fold = partial(ufunc, out=folded)  # maximum and minimum take `out` by keyword only
    yield fold, (first, source[along(position, axis.seen(1))])
    for tap in range(2, axis.taps):
        yield fold, (folded, source[along(position, axis.seen(tap))])
