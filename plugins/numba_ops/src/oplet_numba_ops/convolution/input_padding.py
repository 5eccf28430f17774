"""Input padding: copies maps into larger ones with a constant border, flipping int8 to uint8 or converting to float."""

from __future__ import annotations

import numpy as np

from oplet_numba_ops.compiling.kernels import Kernel, family, kernel
from oplet_numba_ops.compiling.lazy import inlined

__all__ = ["PAD_BATCHES", "pad_kernel"]


@inlined()
def _pad_line(source, target, number, top, left, value, flip):  # type: ignore[no-untyped-def]
    _, rows, width = source.shape
    b, y = number // target.shape[1], number % target.shape[1]
    line = target[b, y]
    if y < top or y >= top + rows:
        line[:] = value
    else:
        line[:left] = value
        values, inner = source[b, y - top], line[left : left + width]
        for x in range(width):
            inner[x] = values[x] ^ flip
        line[left + width :] = value


def _pad(source, target, first, last, top, left, value, flip):  # type: ignore[no-untyped-def]
    for number in range(first, last):
        _pad_line(source, target, number, top, left, value, flip)


def _convert(source, target, first, last, top, left, value):  # type: ignore[no-untyped-def]
    _, rows, width = source.shape
    for number in range(first, last):
        b, y = number // target.shape[1], number % target.shape[1]
        line = target[b, y]
        if y < top or y >= top + rows:
            line[:] = value
        else:
            line[:left] = value
            values, inner = source[b, y - top], line[left : left + width]
            for x in range(width):
                inner[x] = values[x]
            line[left + width :] = value


@family
def pad_kernel(source: str) -> Kernel:
    """Build the padding kernel for maps (batch, rows, values per row), with `top` rows and `left` values of padding before them.

    It fills the rows `first` to `last` of all maps together.

    Args:
        source: numba's name of the numbers' type, which are converted to float32; "" for bytes, which are copied with xor
            `flip`.
    """
    if not source:
        return Kernel(_pad, "void(u1[:,:,::1], u1[:,:,::1], i8, i8, i8, i8, u1, u1)")
    return Kernel(_convert, f"void({source}[:,:,::1], f4[:,:,::1], i8, i8, i8, i8, f4)")


@kernel("void(u1[:,:,::1], u1[:,:,::1], i4[::1], i8, i8, i8, i8)")
def PAD_BATCHES(source, target, values, first, last, top, left):  # type: ignore[no-untyped-def]
    """Pad byte maps as `pad_kernel` does, with a separate border value for each map of the batch."""
    for number in range(first, last):
        _pad_line(source, target, number, top, left, np.uint8(values[number // target.shape[1]]), np.uint8(0))
