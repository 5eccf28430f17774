"""Input padding: copies maps into larger ones with a constant border, flipping int8 to uint8 or converting to float."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oplet_compiled_ops.library.kernels import built_with
from oplet_compiled_ops.library.lazy import inlined

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


@built_with(lambda: [("",), ("f4",), ("i1",), ("u1",), ("i2",)])
def pad_kernel(source: str) -> Callable[..., Any]:
    """Build the kernel that copies maps (batch, rows, values per row) into larger ones, with a border of one value.

    The kernel's arguments are the two arrays, `first` and `last` (which rows of all the larger maps to write), `top` (the rows of
    border above), `left` (the values of border before each row), and the border's value.

    Args:
        source: numba's name of the numbers' type, which are converted to float32; "" for bytes, each of which is copied as byte ^
            `flip`, the kernel's last argument (128 turns int8 into uint8).
    """
    return _convert if source else _pad


def PAD_BATCHES(source, target, values, first, last, top, left):  # type: ignore[no-untyped-def]
    """Copy byte maps (batch, rows, values per row) into larger ones, with a border of one value per map (`values`).

    Rows `first` to `last` (exclusive) of all larger maps are written; `top` rows and `left` values of border come before a map.
    """
    for number in range(first, last):
        _pad_line(source, target, number, top, left, np.uint8(values[number // target.shape[1]]), np.uint8(0))
