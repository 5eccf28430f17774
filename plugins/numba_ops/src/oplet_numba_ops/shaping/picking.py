"""GATHER_ND, SCATTER_ND and ONE_HOT: indices are checked as they are read."""

from __future__ import annotations

from oplet_numba_ops.compiling.kernels import Kernel, family
from oplet_numba_ops.compiling.lazy import inlined

__all__ = ["one_hot_kernel", "pick_kernel", "scatter_kernel"]


@inlined(error_model="numpy", boundscheck=False)
def _position(indices, row, depth, bounds, strides):  # type: ignore[no-untyped-def]
    """Return the flat position of an index vector's slice; -1 if an index is out of bounds."""
    position = 0
    for axis in range(depth):
        index = indices[row * depth + axis]
        if index < 0 or index >= bounds[axis]:
            return -1
        position += index * strides[axis]
    return position


@family
def pick_kernel(index: str, value: str) -> Kernel:
    """Build the GATHER_ND kernel: copy `count` slices of `size` numbers; `failed` is set to 1 at an out-of-bounds index.

    Args:
        index: numba's name of the type of indices.
        value: that of unsigned numbers as large as the values.
    """

    def pick(source, indices, out, bounds, strides, failed, count, depth, size):  # type: ignore[no-untyped-def]
        for row in range(count):
            position = _position(indices, row, depth, bounds, strides)
            if position < 0:
                failed[0] = 1
                return
            for i in range(size):
                out[row * size + i] = source[position + i]

    arrays = f"{value}[::1], {index}[::1], {value}[::1], i8[::1], i8[::1], i8[::1]"
    return Kernel(pick, f"void({arrays}, i8, i8, i8)")


@family
def scatter_kernel(index: str, value: str) -> Kernel:
    """Build the SCATTER_ND kernel: add `count` slices of `size` numbers to zeros in order; arguments as for `pick_kernel`."""

    def scatter(slices, indices, out, bounds, strides, failed, count, depth, size):  # type: ignore[no-untyped-def]
        for i in range(out.size):
            out[i] = 0
        for row in range(count):
            position = _position(indices, row, depth, bounds, strides)
            if position < 0:
                failed[0] = 1
                return
            for i in range(size):
                out[position + i] += slices[row * size + i]

    arrays = f"{value}[::1], {index}[::1], {value}[::1], i8[::1], i8[::1], i8[::1]"
    return Kernel(scatter, f"void({arrays}, i8, i8, i8)")


@family
def one_hot_kernel(index: str, value: str) -> Kernel:
    """Build the ONE_HOT kernel: `outer` tables of `depth` rows of `inner` numbers; only indices' lower 32 bits count."""

    def one_hot(indices, on, off, out, outer, depth, inner):  # type: ignore[no-untyped-def]
        hot, cold = on[0], off[0]
        place = 0
        for table in range(outer):
            for row in range(depth):
                for i in range(inner):
                    index = indices[table * inner + i]
                    index = ((index + 2147483648) & 4294967295) - 2147483648
                    out[place] = hot if index == row else cold
                    place += 1

    return Kernel(one_hot, f"void({index}[::1], {value}[::1], {value}[::1], {value}[::1], i8, i8, i8)")
