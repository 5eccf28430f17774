"""Copies between strided views of arrays, of up to five axes, as raw bits of any type."""

from __future__ import annotations

from oplet_compiled_ops.library.lazy import emitted
from oplet_compiled_ops.shaping.transposing import copy_items, turn_square

_move = emitted("copying:move")


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
