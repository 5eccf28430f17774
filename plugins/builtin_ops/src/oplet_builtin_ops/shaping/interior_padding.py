"""Padding between a tensor's values and at its edges (negative crops), for STABLEHLO_PAD and DILATE.

Numerics: tflite/kernels/stablehlo_pad.cc, dilate.cc
"""

from __future__ import annotations

from dataclasses import dataclass

from oplet.kernels.arrays import Array
from oplet_builtin_ops.layers.program import Call

__all__ = ["AxisPadding", "padding_calls"]


@dataclass(frozen=True)
class AxisPadding:
    """The low, high and interior padding along one axis.

    Attributes:
        size: the size of the axis without padding.
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
        """The size of the axis after padding; negative if more is cropped than there is."""
        return self.size + max(self.size - 1, 0) * self.interior + self.low + self.high

    def places(self) -> tuple[slice, slice]:
        """Return the slice of positions that are written in the output, and the slice of input values that survive cropping."""
        step = self.interior + 1
        first = max(0, -(self.low // step))
        end = min(self.size, -((self.low - self.padded) // step))
        if end <= first:
            return slice(0, 0), slice(0, 0)
        start = self.low + first * step
        return slice(start, start + (end - first - 1) * step + 1, step), slice(first, end)


def padding_calls(source: Array, axes: list[AxisPadding], value: Array, target: Array) -> list[Call]:
    """Return prebound numpy calls that pad `source` with interior and edge padding.

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
