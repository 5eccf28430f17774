"""SUM and REDUCE_PROD of quantized numbers over adjacent axes: (outer, reduced, inner) becomes (outer, inner)."""

from __future__ import annotations

import numpy as np

from oplet import TensorType
from oplet_compiled_ops.library.kernels import Kernel

__all__ = ["PRODUCT", "REAL_SUM"]


def _real_sum(x, out, sums, scale, bias, zero, low, high):  # type: ignore[no-untyped-def]
    """Sum integers (outer, reduced, inner) over the middle axis, rescale in float32, and round with ties away from zero.

    An output is round(sum * scale + bias) + zero, clamped to `low` and `high`; `sums` is scratch of `inner` int32.
    """
    for outer in range(x.shape[0]):
        for i in range(sums.size):
            sums[i] = 0
        for row in range(x.shape[1]):
            source = x[outer, row]
            for i in range(sums.size):
                sums[i] += source[i]
        target = out[outer]
        for i in range(sums.size):
            real = np.float64(np.float32(np.float32(np.float32(sums[i]) * scale) + bias))
            whole = np.copysign(np.floor(abs(real) + 0.5), real) + zero
            target[i] = np.int64(min(max(whole, low), high))


def _product(x, out, offset, scale, half, amount, zero, low, high):  # type: ignore[no-untyped-def]
    """Multiply integers (outer, reduced, inner), less `offset`, over the middle axis, rescaling after each factor but the first,
    and at the end.

    To rescale is (value * scale + half) >> amount; an output is the product plus `zero`, clamped to `low` and `high`.
    """
    for outer in range(x.shape[0]):
        for i in range(x.shape[2]):
            total = np.int64(x[outer, 0, i]) - offset
            for row in range(1, x.shape[1]):
                total = (total * (np.int64(x[outer, row, i]) - offset) * scale + half) >> amount
                total = np.int64(np.int32(total))
            total = np.int64(np.int32((total * scale + half) >> amount))
            out[outer, i] = min(max(total + zero, low), high)


_CODES = {TensorType.INT8: "i1", TensorType.INT16: "i2"}
#: By the type of the numbers.
REAL_SUM = {
    type: Kernel(_real_sum, f"void({code}[:,:,::1], {code}[:,::1], i4[::1], f4, f4, f8, f8, f8)") for type, code in _CODES.items()
}
PRODUCT = {
    type: Kernel(_product, f"void({code}[:,:,::1], {code}[:,::1], i8, i8, i8, i8, i8, i8, i8)") for type, code in _CODES.items()
}
