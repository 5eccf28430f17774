"""SOFTMAX and LOG_SOFTMAX of 8-bit values through a float32 table of exp, for scales too small for fixed point.

LiteRT's reference kernels abort the process there; its other kernels look up exponentials in a table of floats. Numerics:
tflite/kernels/internal/optimized/optimized_ops.h (PopulateSoftmaxLookupTable, Softmax, LogSoftmax)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from oplet import Tensor
from oplet.kernels.arrays import Array, Thunk

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["TabledLogSoftmax", "TabledSoftmax"]

_ONE, _HALF = np.float32(1), np.float32(0.5)


class _Tabled:
    """Base class of the table-based SOFTMAX and LOG_SOFTMAX.

    Attributes:
        exponentials: exp(-d * scale * beta) for the distances d from 0 to 255.
    """

    def __init__(self, source: Tensor, output: Tensor, beta: float) -> None:
        self.source_scale = np.float32(source.scale)
        self.scale = np.float32(output.scale)
        self.zero_point = output.zero_point
        self.exponentials = _exponentials(self.source_scale, beta)

    def bind(self, x: Array, y: Array, largest: Array, distances: Array, *scratch: Array) -> Thunk:
        """Return a function that computes y from x; `largest` has one element per row, the other arrays are scratch of x's shape."""
        octets, top = x.view(np.uint8), largest.view(np.uint8)
        found, sums = np.empty(x.shape, np.float32), np.empty(x.shape, np.float32)

        def run() -> None:
            np.maximum.reduce(x, -1, out=largest, keepdims=True)
            np.subtract(top, octets, distances)
            found[...] = self.exponentials[distances]
            # Summed one after the other, in LiteRT's order.
            np.add.accumulate(found, -1, out=sums)
            self._finish(x, y, largest, found, sums[..., -1:])

        return run

    def _finish(self, x: Array, y: Array, largest: Array, exponentials: NDArray[Any], sums: NDArray[Any]) -> None:
        raise NotImplementedError


def _exponentials(scale: np.float32, beta: float) -> NDArray[np.float32]:
    steps = -scale * np.float32(beta) * np.arange(256, dtype=np.float32)
    powers: NDArray[np.float32] = np.exp(steps.astype(np.float64)).astype(np.float32)
    return powers


class TabledSoftmax(_Tabled):
    """SOFTMAX of 8-bit input by a table of exponentials; the output is 8-bit or int16."""

    def _finish(self, x: Array, y: Array, largest: Array, exponentials: NDArray[Any], sums: NDArray[Any]) -> None:
        with np.errstate(all="ignore"):
            steps = exponentials * (_ONE / (sums * self.scale))
        if y.dtype == np.uint8:
            whole = np.trunc(steps + _HALF)
        else:
            whole = np.floor(steps.astype(np.float64) + 0.5) + self.zero_point
        limits = np.iinfo(y.dtype)
        y[...] = np.clip(whole, limits.min, limits.max)


class TabledLogSoftmax(_Tabled):
    """LOG_SOFTMAX of 8-bit input by a table of exponentials."""

    def _finish(self, x: Array, y: Array, largest: Array, exponentials: NDArray[Any], sums: NDArray[Any]) -> None:
        logarithms = np.log(sums.astype(np.float64)).astype(np.float32)
        precomputed = (self.source_scale * largest.astype(np.float32) + logarithms) / self.scale
        steps = self.source_scale / self.scale * x.astype(np.float32) - precomputed
        limits = np.iinfo(y.dtype)
        y[...] = np.clip(np.rint(steps) + np.float32(self.zero_point), limits.min, limits.max)
