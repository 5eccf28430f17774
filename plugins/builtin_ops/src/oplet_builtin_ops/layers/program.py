"""A kernel's work as numpy calls whose arguments are all looked up: what `bind` makes and the thunk runs.

How many calls there are follows from shapes and options, which are a stranger's. `run_program` is what every kernel uses where that
number has no bound of its own: it takes what yields the calls, keeps them if they are few, and else has them made anew, a few at a time,
in each run. What is kept is charged to the memory limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import repeat
from math import prod

import numpy as np

from oplet import Context, charge, checkpoint
from oplet.errors import LimitError
from oplet.kernels.arrays import Array
from oplet_builtin_ops.layers.pacing import Call, run_watched, watched_parts

__all__ = [
    "Call", "Calls", "convert", "lane_count", "places", "repeated", "repeats", "run_anew", "run_calls", "run_lanes", "run_program",
]  # fmt: skip

#: What yields the calls of a program, the same ones each time.
Calls = Callable[[], Iterable[Call]]

#: Seconds; shorter work is not shared. Waking a thread, and waiting for it at the end, takes up to 100 microseconds; two threads that
#: make calls of a few microseconds wait for Python's lock more than they win; and on a busy machine the shared part may even wait.
_WORTH_SHARING = 600e-6

#: Short operands make short inner loops; rows are joined until they are about this long.
_JOINED = 1024

#: What a call takes, with the pair, its arguments, and two or three views; what all calls of a program may take at most; and up to how
#: many of them need not be counted.
_CALL_BYTES, _KEPT_BYTES, _UNCOUNTED = 512, 1 << 25, 64


def run_calls(calls: Iterable[Call]) -> Callable[[], None]:
    """The thunk that makes the calls, of which the kernel itself says how few there are, in order."""
    return _running(list(watched_parts(calls)))


def run_program(make: Calls, call_bytes: int = _CALL_BYTES) -> Callable[[], None]:
    """The thunk that makes any number of calls, in order; more than are kept, or than there may be memory for, are made anew each time.

    Args:
        call_bytes: what one call takes, if it holds more than views.

    Raises:
        CancelledError, DeadlineError: while they were made, the time for it was over; let it pass.
    """
    parts: list[tuple[Call, ...]] = []
    count = 0
    for part in watched_parts(make()):
        if count * call_bytes > _KEPT_BYTES:
            return partial(run_anew, make)
        if parts:
            checkpoint()
        parts.append(part)
        count += len(part)
    return _running(parts) if count <= _UNCOUNTED or _may_keep(count * call_bytes) else partial(run_anew, make)


def _running(parts: list[tuple[Call, ...]]) -> Callable[[], None]:
    if len(parts) > 1:
        return partial(run_watched, parts)
    program = parts[0] if parts else ()
    if len(program) == 1:
        ((only, operands),) = program
        return lambda: only(*operands)

    def run() -> None:
        for function, arguments in program:
            function(*arguments)

    return run


def _may_keep(nbytes: int) -> bool:
    try:
        charge(nbytes)
    except LimitError:
        return False
    return True


def run_anew(make: Calls) -> None:
    """Make any number of calls, in order, of which none is kept."""
    run_watched(watched_parts(make()))


def places(sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All places in an array of these sizes, the last axis fastest, as `itertools.product` of ranges, which it would write out first."""
    if not sizes:
        yield ()
    elif prod(sizes):
        for first in range(sizes[0]):
            yield from map(tuple.__add__, repeat((first,)), places(sizes[1:]))


def lane_count(context: Context, seconds: float) -> int:
    """Over how many threads to spread work that takes one of them about so long."""
    return context.num_threads if seconds >= _WORTH_SHARING else 1


def run_lanes(context: Context, lanes: Sequence[Calls]) -> Iterator[Call]:
    """The calls that make those of several lanes, each lane in order and all lanes at once."""
    if len(lanes) == 1:
        yield from lanes[0]()
    elif lanes:
        yield context.parallel([run_program(lane) for lane in lanes]), ()


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
