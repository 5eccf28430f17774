"""REDUCE_WINDOW and its StableHLO twin: windows of any rank slide over a tensor, and each is folded into one value.

Windows are folded one axis after the other, which takes as many passes as the window is long along all axes together.
Numerics: tflite/kernels/stablehlo_reduce_window.cc
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from oplet import Context, Node, Tensor, TensorType, ensure, ensure_type
from oplet_builtin_ops.layers.program import Call, run_calls
from oplet_builtin_ops.shaping.shapes import Array, Shape, Thunk, along, ensure_same_type

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


@dataclass(frozen=True)
class WindowAxis:
    """How windows lie along one axis.

    Attributes:
        size: of the input along it.
        taps: values that a window sees.
        stride: steps between windows.
        dilation: steps between taps.
    """

    size: int
    taps: int
    stride: int
    dilation: int

    @property
    def out(self) -> int:
        """How many windows fit."""
        span = (self.taps - 1) * self.dilation + 1
        return 0 if self.size < span else (self.size - span) // self.stride + 1

    def seen(self, tap: int) -> slice:
        """The values that each window sees through a tap."""
        start = tap * self.dilation
        return slice(start, start + (self.out - 1) * self.stride + 1, self.stride)


def ensure_reducible(source: Tensor, initial: Tensor, output: Tensor) -> None:
    """Refuse operands that LiteRT does not reduce."""
    ensure_type(source, *REDUCIBLE_TYPES)
    ensure_same_type(source, output)
    ensure_same_type(source, initial)
    ensure(1 <= source.ndim <= 6, f"{source} must have 1 to 6 dimensions.")
    ensure(initial.size >= 1, f"the initial value {initial} must hold a value.")


def window_axes(shape: Shape, taps: list[int], strides: list[int], dilations: list[int]) -> list[WindowAxis]:
    """The windows along each axis.

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
    """The axes along which there is something to fold or to skip, the last first; each cuts down what the next must read."""
    return [(i, axis) for i, axis in reversed(list(enumerate(axes))) if axis.taps > 1 or axis.out != axis.size]


def add_fold_scratch(context: Context, node: Node, axes: list[WindowAxis], type: TensorType) -> list[Tensor]:
    """Ask for what `fold_windows` puts between one axis and the next."""
    shape = [axis.size for axis in axes]
    scratch = []
    for position, axis in _stages(axes)[:-1]:
        shape[position] = axis.out
        scratch.append(context.add_temporary(node, tuple(shape), type))
    return scratch


def fold_windows(
    ufunc: np.ufunc, source: Array, axes: list[WindowAxis], initial: Array, scratch: list[Tensor], target: Array
) -> Thunk:
    """The thunk that folds every window of `source`.

    Args:
        ufunc: of two operands.
        initial: an array whose first value each window starts with.
        scratch: what `add_fold_scratch` asked for.
    """
    if not target.size:
        return run_calls([])
    program: list[Call] = []
    stages = _stages(axes)
    for number, (position, axis) in enumerate(stages):
        folded = target if number == len(stages) - 1 else scratch[number].data
        views = [source[along(position, axis.seen(tap))] for tap in range(axis.taps)]
        if len(views) == 1:
            program.append((np.copyto, (folded, views[0])))
        else:
            # maximum and minimum take `out` by name only.
            fold = partial(ufunc, out=folded)
            program.append((fold, (views[0], views[1])))
            program += [(fold, (folded, view)) for view in views[2:]]
        source = folded
    program.append((partial(ufunc, out=target), (initial.reshape(-1)[:1].reshape(()), source)))
    return run_calls(program)
