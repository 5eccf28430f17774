"""Elementwise work of several passes, cut into blocks that stay in the cache from the first pass to the last, and shared out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod

from oplet import Context
from oplet.kernels.arrays import Array, Shape, Thunk
from oplet_builtin_ops.layers.program import Call, lane_count, run_calls, run_lanes

__all__ = ["run_blocks", "scratch_shape"]

#: Values in a block.
_BLOCK = 1 << 15
#: About how many seconds a pass over a value takes.
_PASS = 2e-10


def scratch_shape(context: Context, shapes: Sequence[Shape], passes: int) -> tuple[int, int]:
    """How much scratch memory `run_blocks` needs: for each lane, the values of its largest block.

    Args:
        shapes: of the arrays.
    """
    lanes, limit = _division(context, prod(shapes[-1]), passes)
    return lanes, _block(shapes, limit)


def run_blocks(
    context: Context, arrays: tuple[Array, ...], passes: int, calls: Callable[..., list[Call]], scratch: Array | None = None
) -> Thunk:
    """The thunk of elementwise calls.

    Args:
        arrays: what the calls work on; the last one has the shape to which the others broadcast.
        passes: how many calls there are; a single one need not be cut for the cache.
        calls: the calls for a block of each array, and of the scratch memory if there is some.
        scratch: of the shape that `scratch_shape` gives for these arrays; what a block needs besides, which stays in the cache.
    """
    lanes, limit = _division(context, arrays[-1].size, passes)
    blocks = list(_cut(arrays, limit))
    programs: list[list[Call]] = [[] for _ in range(lanes)]
    for number, block in enumerate(blocks):
        lane = number * lanes // len(blocks)
        if scratch is not None:
            block = (*block, scratch[lane, : block[-1].size].reshape(block[-1].shape))
        programs[lane] += calls(*block)
    return run_calls(run_lanes(context, [program.copy for program in programs if program]))


def _division(context: Context, size: int, passes: int) -> tuple[int, int]:
    """Lanes, and about how many values to work on at a time."""
    lanes = lane_count(context, size * passes * _PASS)
    return lanes, min(_BLOCK if passes > 1 else size, -(-size // lanes))


def _block(shapes: Sequence[Shape], size: int) -> int:
    """Values of the largest block where about `size` are wanted; `_cut` makes no other ones."""
    last = shapes[-1]
    count = prod(last)
    if count <= size or not last:
        return count
    if all(shape == last for shape in shapes):
        return size
    row = count // last[0]
    return min(count, max(1, size // row) * row)


def _cut(arrays: tuple[Array, ...], size: int) -> Iterator[tuple[Array, ...]]:
    """Views of about `size` values of each array; everything at once where the first axis cannot be cut so."""
    last = arrays[-1]
    if all(array.shape == last.shape for array in arrays):
        arrays = tuple(array.reshape(-1) for array in arrays)
        last = arrays[-1]
    if last.size <= size or last.ndim == 0:
        yield arrays
        return
    rows = len(last)
    step = max(1, size // (last.size // rows))
    is_cut = [array.ndim == last.ndim and len(array) == rows for array in arrays]
    for start in range(0, rows, step):
        part = slice(start, start + step)
        yield tuple([array[part] if cut else array for array, cut in zip(arrays, is_cut)])
