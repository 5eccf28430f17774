"""A kernel's work as a list of numpy calls whose arguments are all looked up: what `bind` makes and the thunk runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet import Context
from oplet_builtin_ops.layers.pacing import Call, run_watched, watched_parts

__all__ = ["Call", "convert", "lane_count", "repeated", "repeats", "run_calls", "run_lanes"]

Array = NDArray[Any]
#: Seconds; shorter work is not shared. Waking a thread, and waiting for it at the end, takes up to 100 microseconds; two threads that
#: make calls of a few microseconds wait for Python's lock more than they win; and on a busy machine the shared part may even wait.
_WORTH_SHARING = 600e-6

#: Short operands make short inner loops; rows are joined until they are about this long.
_JOINED = 1024


def run_calls(calls: Iterable[Call]) -> Callable[[], None]:
    """The thunk that makes the calls in order."""
    program = tuple(calls)
    parts = list(watched_parts(program))
    if len(parts) > 1:
        return partial(run_watched, parts)
    if len(program) == 1:
        ((only, operands),) = program
        return lambda: only(*operands)

    def run() -> None:
        for function, arguments in program:
            function(*arguments)

    return run


def lane_count(context: Context, seconds: float) -> int:
    """Over how many threads to spread work that takes one of them about so long."""
    return context.num_threads if seconds >= _WORTH_SHARING else 1


def run_lanes(context: Context, lanes: Iterable[Iterable[Call]]) -> list[Call]:
    """The calls that make those of several lanes, each lane in order and all lanes at once."""
    programs = [program for lane in lanes if (program := list(lane))]
    if len(programs) < 2:
        return programs[0] if programs else []
    return [(context.parallel([run_calls(program) for program in programs]), ())]


def convert(target: Array, values: Array) -> None:
    """Copy, converting to the target's type."""
    np.copyto(target, values, casting="unsafe")


@lru_cache(maxsize=4096)
def repeats(rows: int, columns: int) -> int:
    """How many rows of a contiguous matrix to join so that a value per column makes long inner loops; it divides `rows`."""
    wanted = max(1, min(rows, _JOINED // max(columns, 1)))
    return next(r for r in range(wanted, 0, -1) if rows % r == 0)


def repeated(values: Array, times: int) -> Array:
    """`values` so many times in a row."""
    return values[None].repeat(times, 0).reshape(-1) if times > 1 else values
