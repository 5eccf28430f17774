"""Slices at run-time positions, read (GATHER, SLICE, STRIDED_SLICE, EMBEDDING_LOOKUP) and written (DYNAMIC_UPDATE_SLICE), and
values selected by a condition (SELECT_V2).

If a position is out of range, the kernel writes it to its error flag, an array `mark` (`threads.failing`), and copies nothing.
"""

from __future__ import annotations

import numpy as np

from oplet import Node, TensorType, decline
from oplet.kernels.arrays import Shape
from oplet.kernels.shapes import offer_in_place
from oplet_compiled_ops.library.kernels import Kernel, family, kernel
from oplet_compiled_ops.library.lazy import emitted, inlined
from oplet_compiled_ops.library.memory import flat
from oplet_compiled_ops.overriding import Bind, Thunk
from oplet_compiled_ops.shaping.transposing import copy_items
from oplet_compiled_ops.threads.team import Step, ready, thunk

__all__ = [
    "DEQUANTIZE_ROWS",
    "JOIN_SLICES",
    "POSITIONS",
    "TAKE_POSITIONS",
    "gather_kernel",
    "plan_choice",
    "slice_kernel",
    "update_kernel",
]

#: The types of run-time positions, and what kernels call them.
POSITIONS = {TensorType.INT32: "i4", TensorType.INT64: "i8"}

#: The most bytes of an output of SELECT_V2; for larger ones numpy is as fast.
_MOST = 1 << 20
#: The axes of its loops, and the bytes of its numbers.
_AXES = 5
_SIZES = 1, 2, 4, 8

_inlined = inlined(inline="never", error_model="numpy", boundscheck=False)
_load = emitted("atomics:load")
_move = emitted("copying:move")
_store = emitted("atomics:store")


@_inlined
def _copy(source, target, nbytes):  # type: ignore[no-untyped-def]
    if nbytes & 3 == 0:
        copy_items(4, source, target, nbytes >> 2)
    else:
        copy_items(1, source, target, nbytes)


@family(lambda: [("i4",), ("i8",)])
def gather_kernel(code: str) -> Kernel:
    """Build the GATHER kernel: from (batches, before, length, nbytes) to (batches, before, count, nbytes), both given by address.

    `before` are the slices before the axis that is gathered along, `nbytes` the bytes of what follows it. `code` is numba's name
    of the type of the positions.
    """

    def gather(source, positions, target, mark, batches, before, length, count, nbytes):  # type: ignore[no-untyped-def]
        for batch in range(batches):
            for k in range(count):
                position = positions[batch * count + k]
                if position < 0 or position >= length:
                    mark[0] = 1
                    mark[1] = position
                    return
        for batch in range(batches):
            for row in range(batch * before, (batch + 1) * before):
                for k in range(count):
                    _copy(
                        source + (row * length + positions[batch * count + k]) * nbytes,
                        target + (row * count + k) * nbytes,
                        nbytes,
                    )

    return Kernel(gather, f"void(i8, {code}[::1], i8, i8[::1], i8, i8, i8, i8, i8)")


@family(lambda: [("i4",), ("i8",)])
def slice_kernel(code: str) -> Kernel:
    """Build the SLICE kernel, which copies a block of known size from a position that the run knows; `code` is numba's type of
    positions.

    The kernel's arguments are the positions `begins`, the highest allowed ones `most`, the byte `steps` along each axis, and the
    error flag `mark`; then the addresses of `source` and `target`, the lengths of four loops, the bytes that each copies at once,
    and the byte strides of the source and of the target along these loops.
    """

    # fmt: off
    def cut(  # type: ignore[no-untyped-def]
        begins, most, steps, mark, source, target, n0, n1, n2, n3, nbytes, s0, s1, s2, s3, t0, t1, t2, t3,
    ):
        # fmt: on
        start = source
        for axis in range(begins.size):
            begin = begins[axis]
            mark[1 + axis] = begin
            if begin < 0 or begin > most[axis]:
                mark[0] = 1
            else:
                start += begin * steps[axis]
        if mark[0] != 0:
            return
        for a in range(n0):
            for b in range(n1):
                for c in range(n2):
                    for d in range(n3):
                        at = a * t0 + b * t1 + c * t2 + d * t3
                        _copy(start + a * s0 + b * s1 + c * s2 + d * s3, target + at, nbytes)

    return Kernel(cut, f"void({code}[::1], i8[::1], i8[::1], i8[::1], {', '.join(['i8'] * 15)})")


@family(lambda: [("i4",), ("i8",)])
def update_kernel(code: str) -> Kernel:
    """Build the DYNAMIC_UPDATE_SLICE kernel, which writes a block into a tensor; `code` is numba's type of the start positions.

    The kernel's arguments are the start positions `begins`, the highest ones at which the block lies inside (`most`), to which
    they are clamped, and the byte `steps` along each axis; then the addresses of the block (`source`) and of the tensor
    (`target`), the lengths of four loops, the bytes that each copies at once, and the byte strides of the block and of the tensor
    along these loops.
    """

    # fmt: off
    def update(  # type: ignore[no-untyped-def]
        begins, most, steps, source, target, n0, n1, n2, n3, nbytes, s0, s1, s2, s3, t0, t1, t2, t3,
    ):
        # fmt: on
        start = target
        for axis in range(begins.size):
            start += max(0, min(begins[axis], most[axis])) * steps[axis]
        for a in range(n0):
            for b in range(n1):
                for c in range(n2):
                    read, write = source + a * s0 + b * s1 + c * s2, start + a * t0 + b * t1 + c * t2
                    if nbytes == 4:
                        for d in range(n3):
                            _move(4, read + d * s3, write + d * t3)
                    else:
                        for d in range(n3):
                            _copy(read + d * s3, write + d * t3, nbytes)

    return Kernel(update, f"void({code}[::1], i8[::1], i8[::1], {', '.join(['i8'] * 15)})")


@kernel("void(i1[:,::1], i4[::1], f4[::1], f4[:,::1], i8[::1], i8)")
def DEQUANTIZE_ROWS(table, numbers, scales, out, mark, block):  # type: ignore[no-untyped-def]
    """Pick rows of a table of integers and multiply them by their scales, one for each `block` columns of each row, or one for all.

    If there is no row of one of the `numbers`, `mark`, the error flag, receives it.
    """
    for number in numbers:
        if number < 0 or number >= table.shape[0]:
            mark[0] = 1
            mark[1] = number
            return
    columns = table.shape[1]
    for row in range(numbers.size):
        number = numbers[row]
        place = number * (columns // block) if scales.size > 1 else 0
        for start in range(0, columns, block):
            scale = scales[place]
            values, target = table[number, start : start + block], out[row, start : start + block]
            for i in range(block):
                target[i] = np.float32(values[i]) * scale
            place += 1 if scales.size > 1 else 0


@_inlined
def _number(where, nbytes, word):  # type: ignore[no-untyped-def]
    """Return the signed integer of `nbytes` bytes (4 or 8) at the address `where`; `word` is the address of 8 scratch bytes."""
    if nbytes == 8:
        return _load(where)
    _store(word, 0)
    _move(4, where, word)
    return (_load(word) ^ 0x80000000) - 0x80000000


@kernel("void(i8[::1], i8[::1], i8[::1], i8, i8, i8, i8, i8, i8)")
def JOIN_SLICES(pieces, shape, mark, source, target, word, axis, outer, nbytes):  # type: ignore[no-untyped-def]
    """Concatenate pieces along an axis, some of which are slices of `source`, if the whole has the shape of `source`; else set
    `mark`.

    `pieces` has six words for each piece: its length along the axis and its address; or, for a slice, -1, address and byte width
    of the integers of `begin`, the same of `size`, and a word in which the start position is stored. `outer` is the product of
    the lengths before the axis, `nbytes` the bytes of what follows it; `source` and `target` are addresses, `word` that of 8
    scratch bytes.
    """
    total = 0
    for place in range(0, pieces.size, 6):
        if pieces[place] >= 0:
            total += pieces[place]
            continue
        for number in range(shape.size):
            dim = shape[number]
            begin = _number(pieces[place + 1] + number * pieces[place + 2], pieces[place + 2], word)
            size = _number(pieces[place + 3] + number * pieces[place + 4], pieces[place + 4], word)
            if begin < 0 or begin > dim or size < -1 or size > dim:
                mark[0] = 1
                return
            if size < 0:
                size = dim - begin
            if begin + size > dim or (number != axis and size != dim):
                mark[0] = 1
                return
            if number == axis:
                pieces[place + 5] = begin
                total += size
    length = shape[axis]
    if total != length:
        mark[0] = 1
        return
    for row in range(outer):
        write = target + row * length * nbytes
        for place in range(0, pieces.size, 6):
            count = pieces[place]
            if count >= 0:
                _copy(pieces[place + 1] + row * count * nbytes, write, count * nbytes)
            else:
                begin = pieces[place + 5]
                count = _number(pieces[place + 3] + axis * pieces[place + 4], pieces[place + 4], word)
                if count < 0:
                    count = length - begin
                _copy(source + (row * length + begin) * nbytes, write, count * nbytes)
            write += count * nbytes


@kernel(f"void(i4[::1], i8[::1], i8[::1], {', '.join(['i8'] * 15)})")
def TAKE_POSITIONS(  # type: ignore[no-untyped-def]
    begins, taken, mark, source, target, n0, n1, n2, n3, nbytes, s0, s1, s2, s3, t0, t1, t2, t3
):
    """Copy what is left of a tensor when a single position is taken along some axes; negative positions count from the end.

    `taken` has three words for each such axis: the index of the position in `begins`, the axis's length and byte stride. If a
    position is out of range, `mark`, the error flag, receives 1 plus its place in `taken`, and all positions. `source` and
    `target` are addresses; n0 to n3 are the lengths of four loops, s0 to s3 and t0 to t3 their byte strides, `nbytes` the bytes
    that the innermost one copies.
    """
    start = source
    for number in range(begins.size):
        mark[1 + number] = begins[number]
    for place in range(0, taken.size, 3):
        position = begins[taken[place]]
        if position < 0:
            position = max(position + taken[place + 1], 0)
        if position >= taken[place + 1]:
            mark[0] = 1 + place
            return
        start += position * taken[place + 2]
    for a in range(n0):
        for b in range(n1):
            for c in range(n2):
                for d in range(n3):
                    at = a * t0 + b * t1 + c * t2 + d * t3
                    _copy(start + a * s0 + b * s1 + c * s2 + d * s3, target + at, nbytes)


@family(lambda: [(size,) for size in _SIZES])
def _choice_kernel(size: int) -> Kernel:
    """Build the SELECT_V2 kernel for numbers of `size` bytes.

    After the four arrays it takes the lengths of five loops, and the strides along them, in elements, of condition, x and y.
    """

    def choose(  # type: ignore[no-untyped-def]
        condition, x, y, out, n0, n1, n2, n3, n4, c0, c1, c2, c3, c4, x0, x1, x2, x3, x4, y0, y1, y2, y3, y4
    ):
        at = 0
        for a in range(n0):
            for b in range(n1):
                for c in range(n2):
                    for d in range(n3):
                        p = a * c0 + b * c1 + c * c2 + d * c3
                        q = a * x0 + b * x1 + c * x2 + d * x3
                        r = a * y0 + b * y1 + c * y2 + d * y3
                        if c4 == 1 and x4 == 1 and y4 == 1:
                            for i in range(n4):
                                one, other = x[q + i], y[r + i]
                                out[at + i] = one if condition[p + i] != 0 else other
                        elif c4 == 1 and x4 == 0 and y4 == 1:
                            one = x[q]
                            for i in range(n4):
                                other = y[r + i]
                                out[at + i] = one if condition[p + i] != 0 else other
                        elif c4 == 1 and x4 == 1 and y4 == 0:
                            other = y[r]
                            for i in range(n4):
                                one = x[q + i]
                                out[at + i] = one if condition[p + i] != 0 else other
                        else:
                            for i in range(n4):
                                one, other = x[q + i * x4], y[r + i * y4]
                                out[at + i] = one if condition[p + i * c4] != 0 else other
                        at += n4

    return Kernel(choose, f"void(u1[::1], u{size}[::1], u{size}[::1], u{size}[::1], {', '.join(['i8'] * 20)})")


def _steps(shape: Shape, small: Shape) -> list[int]:
    """Return the strides, in elements, of an operand of shape `small` along the axes of an output of shape `shape`; 0 where it
    broadcasts.
    """
    steps, step = [0] * len(shape), 1
    for axis in range(1, min(len(small), len(shape)) + 1):
        if small[-axis] != 1:
            steps[-axis] = step
            step *= small[-axis]
    return steps


def plan_choice(node: Node, *shapes: Shape) -> Bind:
    """Plan a SELECT or SELECT_V2 node; `shapes` are the shapes of condition, x and y for broadcasting to the output."""
    output = node.outputs[0]
    size = output.dtype.itemsize
    if not output.size or output.is_dynamic or output.dtype.hasobject or size not in _SIZES or output.nbytes > _MOST:
        decline("there is nothing to select, or so much that numpy is as fast.")
    axes: list[tuple[int, ...]] = []
    for length, *steps in zip(output.shape, *(_steps(output.shape, shape) for shape in shapes)):
        if length == 1:
            continue
        if axes and all(outer == length * inner for outer, inner in zip(axes[-1][1:], steps)):
            axes[-1] = axes[-1][0] * length, *steps
        else:
            axes.append((length, *steps))
    if len(axes) > _AXES:
        decline("its operands repeat in a way that its loops do not know.")
    axes = [(1, 0, 0, 0)] * (_AXES - len(axes)) + axes
    numbers = [number for words in zip(*axes) for number in words]
    chosen = _choice_kernel(size)
    ready(chosen)
    offer_in_place(node)

    def bind() -> Thunk:
        condition, x, y, out = (flat(tensor.data) for tensor in (*node.inputs, output))
        words = [array.view(f"u{size}") for array in (x, y, out)]
        return thunk([Step(chosen, [(condition.view("u1"), *words, *numbers)])])

    return bind
