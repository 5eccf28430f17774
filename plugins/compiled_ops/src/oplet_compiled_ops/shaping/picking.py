"""GATHER_ND, SCATTER_ND and ONE_HOT: kernels that check each index as they read it."""

from __future__ import annotations

from itertools import product

from oplet_compiled_ops.library.kernels import Kernel, family
from oplet_compiled_ops.library.lazy import inlined

__all__ = ["one_hot_kernel", "pick_kernel", "scatter_kernel"]


@inlined(error_model="numpy", boundscheck=False)
def _position(indices, row, depth, bounds, strides):  # type: ignore[no-untyped-def]
    """Return the position of the first element of the slice that the index vector `row` selects; -1 if an index is out of bounds.

    Vectors have `depth` indices; `bounds` and `strides` are the lengths and strides (in elements) of the axes that they index.
    """
    position = 0
    for axis in range(depth):
        index = indices[row * depth + axis]
        if index < 0 or index >= bounds[axis]:
            return -1
        position += index * strides[axis]
    return position


#: Types as large as numbers may be, in numba's notation.
_UNSIGNED = ("u1", "u2", "u4", "u8")


@family(lambda: product(("i2", "i4", "i8"), _UNSIGNED))
def pick_kernel(index: str, value: str) -> Kernel:
    """Build the GATHER_ND kernel: it copies `count` slices of `size` numbers each.

    If an index is out of bounds, the kernel sets its argument `failed` to 1 and stops.

    Args:
        index: numba's name of the type of indices ("i4").
        value: numba's name of the unsigned type whose size the values have ("u4").
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


@family(lambda: product(("i4",), ("f4", "i1", "u1", "i2", "i4", "i8")))
def scatter_kernel(index: str, value: str) -> Kernel:
    """Build the SCATTER_ND kernel: it adds `count` slices of `size` numbers each, in order, to an output of zeros.

    If an index is out of bounds, the kernel sets its argument `failed` to 1 and stops.

    Args:
        index: numba's name of the type of indices ("i4").
        value: numba's name of the type of the values ("f4").
    """

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


@family(lambda: product(("i4", "i8"), _UNSIGNED))
def one_hot_kernel(index: str, value: str) -> Kernel:
    """Build the ONE_HOT kernel: the output is (outer, depth, inner), the indices are (outer, inner).

    Only the lower 32 bits of an index count, as in LiteRT. `index` and `value` are numba's names of the types of indices and
    outputs.
    """

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
