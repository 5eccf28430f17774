"""Copies between strided views of arrays, of up to five axes, as raw bits of any type."""

from __future__ import annotations

import numpy as np

from oplet_compiled_ops.library.kernels import kernel
from oplet_compiled_ops.library.lazy import emitted
from oplet_compiled_ops.library.memory import Array
from oplet_compiled_ops.shaping.transposing import copy_items, turn_square

__all__ = ["AXES", "COPY", "COPY_WORDS", "SIZES", "copy_arguments"]

#: The most axes that part, of which a copy's arguments tell.
AXES = 5
#: The bytes of numbers that COPY moves.
SIZES = (1, 2, 4, 8)
#: The number of COPY's arguments.
COPY_WORDS = 3 + 3 * AXES


_move = emitted("copying:move")


@kernel(f"void({', '.join(['i8'] * COPY_WORDS)})")
def COPY(source, target, size, n0, n1, n2, n3, n4, s0, s1, s2, s3, s4, t0, t1, t2, t3, t4):  # type: ignore[no-untyped-def]
    """Copy numbers between strided views of memory.

    Args:
        source: the address of the view to read; `target` is that to write.
        size: the bytes of a number: 1, 2, 4 or 8.
        n0: the length of the first of five axes; n1 to n4 are those of the others.
        s0: the byte stride of the source along the first axis; s1 to s4 are those along the others.
        t0: the byte stride of the target along the first axis; t1 to t4 are those along the others.
    """
    whole = s4 == size and t4 == size
    turned = t4 == size and s3 == size and (size == 1 or size == 4) and n3 >= 4 and n4 >= 4
    for a in range(n0):
        for b in range(n1):
            for c in range(n2):
                read, write = source + a * s0 + b * s1 + c * s2, target + a * t0 + b * t1 + c * t2
                if turned and not whole:
                    for i in range(0, n4, 16):
                        for j in range(0, n3, 16):
                            if size == 4:
                                turn_square(
                                    4, read + i * s4 + j * 4, s4, min(16, n4 - i), write + j * t3 + i * 4, t3, min(16, n3 - j)
                                )
                            else:
                                turn_square(1, read + i * s4 + j, s4, min(16, n4 - i), write + j * t3 + i, t3, min(16, n3 - j))
                    continue
                for _ in range(n3):
                    if whole:
                        if size & 3 == 0:
                            copy_items(4, read, write, n4 * (size >> 2))
                        else:
                            copy_items(1, read, write, n4 * size)
                    elif size == 4:
                        for i in range(n4):
                            _move(4, read + i * s4, write + i * t4)
                    elif size == 1:
                        for i in range(n4):
                            _move(1, read + i * s4, write + i * t4)
                    elif size == 2:
                        for i in range(n4):
                            _move(2, read + i * s4, write + i * t4)
                    else:
                        for i in range(n4):
                            _move(8, read + i * s4, write + i * t4)
                    read += s3
                    write += t3


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
    return source.ctypes.data, target.ctypes.data, size, *lengths, *reads, *writes
