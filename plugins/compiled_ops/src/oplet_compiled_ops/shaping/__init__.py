"""Kernels that move, resize or select values, or find positions: borders, transposes, resizing, boxes, searches. Most copy raw
bits of any type.

The one that most rooms call is declared here, COPY (its source is in `copying`), with the function that writes its arguments.
"""

from __future__ import annotations

import numpy as np

from oplet_compiled_ops.library.kernels import Kernel
from oplet_compiled_ops.library.memory import Array, address

__all__ = ["AXES", "COPY", "COPY_WORDS", "SIZES", "copy_arguments"]

#: The most axes that part, of which a copy's arguments tell.
AXES = 5
#: The bytes of numbers that COPY moves.
SIZES = (1, 2, 4, 8)
#: The number of COPY's arguments.
COPY_WORDS = 3 + 3 * AXES

#: Copies numbers between strided views of memory.
COPY = Kernel("shaping.copying:COPY", f"void({', '.join(['i8'] * COPY_WORDS)})")


def copy_arguments(target: Array, source: Array) -> tuple[int, ...] | None:
    """Return the arguments with which COPY copies `source` into `target`.

    None if the two have different shapes or types, if they share memory, or if they have more axes, or other numbers, than COPY
    takes.
    """
    size = source.itemsize
    if source.dtype != target.dtype or source.dtype.hasobject or size not in SIZES or source.shape != target.shape:
        return None
    if np.may_share_memory(source, target):
        return None
    axes: list[tuple[int, int, int]] = []
    for length, read, write in zip(source.shape, source.strides, target.strides):
        if length == 1:
            continue
        if axes and axes[-1][1] == length * read and axes[-1][2] == length * write:
            axes[-1] = axes[-1][0] * length, read, write
        else:
            axes.append((length, read, write))
    if len(axes) > AXES:
        return None
    # The outer axes may come in any order; the one along which the source is contiguous comes last, for tables to be transposed.
    axes[:-1] = sorted(axes[:-1], key=lambda axis: axis[1] == size)
    axes = [(1, 0, 0)] * (AXES - len(axes)) + axes
    if axes[-1][0] == 1:
        axes[-1] = 1, size, size
    lengths, reads, writes = zip(*axes)
    return address(source), address(target), size, *lengths, *reads, *writes
