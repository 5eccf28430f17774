"""Elementwise work of several passes, cut into blocks that stay in the cache from the first pass to the last, and shared out."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from oplet import Context
from oplet_builtin_ops.layers.program import Call, lane_count, run_calls, run_lanes
from oplet_builtin_ops.shaping.shapes import Array, Thunk

__all__ = ["run_blocks"]

#: Values in a block.
_BLOCK = 1 << 15
#: About how many seconds a pass over a value takes.
_PASS = 2e-10


def run_blocks(context: Context, arrays: tuple[Array, ...], passes: int, calls: Callable[..., list[Call]]) -> Thunk:
    """The thunk of elementwise calls.

    Args:
        arrays: what the calls work on; the last one has the shape to which the others broadcast.
        passes: how many calls there are; a single one need not be cut for the cache.
        calls: the calls for a block of each array.
    """
    size = arrays[-1].size
    lanes = lane_count(context, size * passes * _PASS)
    blocks = list(_cut(arrays, min(_BLOCK if passes > 1 else size, -(-size // lanes))))
    programs: list[list[Call]] = [[] for _ in range(lanes)]
    for number, block in enumerate(blocks):
        programs[number * lanes // len(blocks)] += calls(*block)
    return run_calls(run_lanes(context, programs))


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
    for start in range(0, rows, step):
        part = slice(start, start + step)
        yield tuple(array[part] if array.ndim == last.ndim and len(array) == rows else array for array in arrays)
