"""Padding between the values of a tensor and at its edges, where a negative edge crops; also for DILATE.

Numerics: tflite/kernels/stablehlo_pad.cc, dilate.cc
"""

from __future__ import annotations

from dataclasses import dataclass

from oplet.kernels.arrays import Array
from oplet_builtin_ops.layers.program import Call

__all__ = ["AxisPadding", "padding_calls"]


@dataclass(frozen=True)
class AxisPadding:
    """The padding along one axis.

    Attributes:
        size: the size of the axis before.
        low: the padding before the first value; if negative, the values that are cropped there.
        high: the padding after the last value; if negative, the values that are cropped there.
        interior: the padding between two neighbours.
    """

    size: int
    low: int = 0
    high: int = 0
    interior: int = 0

    @property
    def padded(self) -> int:
        """The size of the axis afterwards; negative if more is cropped than there is."""
        return self.size + max(self.size - 1, 0) * self.interior + self.low + self.high

    def places(self) -> tuple[slice, slice]:
        """The positions that values are written to, and the values that are not cropped, as slices."""
        step = self.interior + 1
        first = max(0, -(self.low // step))
        end = min(self.size, -((self.low - self.padded) // step))
        if end <= first:
            return slice(0, 0), slice(0, 0)
        start = self.low + first * step
        return slice(start, start + (end - first - 1) * step + 1, step), slice(first, end)


def padding_calls(source: Array, axes: list[AxisPadding], value: Array, target: Array) -> list[Call]:
    """The calls that pad `source`.

    Args:
        source: the tensor.
        axes: the padding along each axis.
        value: the value of the padding, an array of one value that is read when the calls are made.
        target: receives the result; of the shape that follows from `axes`.
    """
    if not target.size:
        return []
    where, taken = zip(*(axis.places() for axis in axes)) if axes else ((), ())
    inner, used = target[where], source[taken]
    everything = (target.__setitem__, (..., value.reshape(())))
    copy = (inner.__setitem__, (..., used))
    if inner.shape == target.shape:
        return [copy]
    return [everything, copy] if inner.size else [everything]
