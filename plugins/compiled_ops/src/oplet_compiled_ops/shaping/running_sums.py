"""Cumulative sums along an axis."""

from __future__ import annotations

from oplet import TensorType
from oplet_compiled_ops.library.kernels import Kernel

__all__ = ["CUMSUM"]


def _cumsum(x, out, exclusive, reverse, first, last):  # type: ignore[no-untyped-def]
    """Compute cumulative sums along the middle axis of `x`, in numpy's order, for the blocks `first` to `last` (exclusive) of the
    first.

    `exclusive`: whether a sum leaves out the value at its own position; `reverse`: whether to sum from the end.
    """
    length, across = x.shape[1], x.shape[2]
    step = -1 if reverse else 1
    start = length - 1 if reverse else 0
    for block in range(first, last):
        if exclusive:
            for i in range(across):
                out[block, start, i] = 0
        else:
            for i in range(across):
                out[block, start, i] = x[block, start, i]
        if across == 1:
            total = out[block, start, 0]
            for n in range(1, length):
                here = start + n * step
                # The first value of an exclusive sum is taken as it is: zero plus minus zero is another zero.
                value = x[block, here - step if exclusive else here, 0]
                total = value if exclusive and n == 1 else total + value
                out[block, here, 0] = total
        else:
            for n in range(1, length):
                here = start + n * step
                values = x[block, here - step if exclusive else here]
                before, sums = out[block, here - step], out[block, here]
                if exclusive and n == 1:
                    for i in range(across):
                        sums[i] = values[i]
                else:
                    for i in range(across):
                        sums[i] = before[i] + values[i]


_CODES = {TensorType.FLOAT32: "f4", TensorType.INT32: "i4", TensorType.INT64: "i8"}
#: By the type of the values.
CUMSUM = {type: Kernel(_cumsum, f"void({code}[:,:,::1], {code}[:,:,::1], i8, i8, i8, i8)") for type, code in _CODES.items()}
