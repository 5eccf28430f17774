"""Multi-pass elementwise work done block by block, so that a block stays in the cache, and divided among threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod

from oplet import Context
from oplet.kernels.arrays import Array, Shape, Thunk
from oplet_builtin_ops.layers.program import Call, lane_count, run_calls, run_lanes

__all__ = ["run_blocks", "scratch_shape"]

#: The values of a block.
_BLOCK = 1 << 15
#: About the seconds that a pass takes per value.
_PASS = 2e-10


def scratch_shape(context: Context, shapes: Sequence[Shape], passes: int) -> tuple[int, int]:
    """Return the scratch shape for `run_blocks`: (threads, values of the largest block).

    Args:
        context: the node's context.
        shapes: the shapes of the arrays.
        passes: the number of numpy calls per block.
    """
    lanes, limit = _division(context, prod(shapes[-1]), passes)
    return lanes, _block(shapes, limit)


def run_blocks(
    context: Context, arrays: tuple[Array, ...], passes: int, calls: Callable[..., list[Call]], scratch: Array | None = None
) -> Thunk:
    """Return a function that runs elementwise numpy calls block by block on several threads.

    Args:
        context: the node's context.
        arrays: the arrays that the calls work on; the last one has the shape to which the others broadcast.
        passes: the number of numpy calls per block; with a single one, blocks need not fit the cache.
        calls: returns the calls for a block of each array, and of the scratch memory if there is some.
        scratch: memory of the shape that `scratch_shape` returns for these arrays, of which each block gets a part that stays in
            the cache.
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
    """Return (number of threads, approximate values per block)."""
    lanes = lane_count(context, size * passes * _PASS)
    return lanes, min(_BLOCK if passes > 1 else size, -(-size // lanes))


def _block(shapes: Sequence[Shape], size: int) -> int:
    """Return the number of values of the largest block that `_cut` makes when asked for about `size`."""
    last = shapes[-1]
    count = prod(last)
    if count <= size or not last:
        return count
    if all(shape == last for shape in shapes):
        return size
    row = count // last[0]
    return min(count, max(1, size // row) * row)


def _cut(arrays: tuple[Array, ...], size: int) -> Iterator[tuple[Array, ...]]:
    """Yield views of about `size` values of each array; one view of everything if the first axis cannot be divided."""
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
