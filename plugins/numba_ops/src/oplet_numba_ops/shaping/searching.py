"""ARG_MAX along short rows, and SCATTER_ND of rows into zeros."""

from __future__ import annotations

from oplet import TensorType
from oplet_numba_ops.compiling.kernels import Kernel

__all__ = ["ARG_MAX", "SCATTER"]


def _arg_max(x, out):  # type: ignore[no-untyped-def]
    for row in range(x.shape[0]):
        values = x[row]
        found = 0
        best = values[0]
        for i in range(1, values.size):
            # The first of equal values; a NaN only if there is nothing else.
            better = (values[i] > best) | ((best != best) & (values[i] == values[i]))
            best = values[i] if better else best
            found = i if better else found
        out[row] = found


def _scatter(places, slices, out, first, last):  # type: ignore[no-untyped-def]
    if first == 0:
        for row in range(out.shape[0]):
            for i in range(out.shape[1]):
                out[row, i] = 0
    for k in range(first, last):
        source, target = slices[k], out[places[k]]
        for i in range(target.size):
            target[i] += source[i]


_CODES = {TensorType.FLOAT32: "f4", TensorType.INT8: "i1", TensorType.UINT8: "u1", TensorType.INT32: "i4"}
_POSITIONS = {TensorType.INT32: "i4", TensorType.INT64: "i8"}
#: By the type of the input and that of the output.
ARG_MAX = {
    (type, position): Kernel(_arg_max, f"void({code}[:,::1], {at}[::1])")
    for type, code in _CODES.items()
    for position, at in _POSITIONS.items()
}
#: By the type of the updates: adds the slices `first` to `last`, after setting the output to zeros if these are the first ones.
SCATTER = {type: Kernel(_scatter, f"void(i8[::1], {code}[:,::1], {code}[:,::1], i8, i8)") for type, code in _CODES.items()}
