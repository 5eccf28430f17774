"""MEAN of quantized numbers over neighbouring axes: sums of rows, then the factor that the count is part of."""

from __future__ import annotations

from oplet import TensorType
from oplet_numba_ops.fixed_point import scaled
from oplet_numba_ops.kernels import Kernel

__all__ = ["MEAN"]


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
