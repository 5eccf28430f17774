"""Programs: a kernel's work as a list of prebound numpy calls, built by `bind` and replayed in each invoke.

The number of calls depends on shapes and options, which an untrusted model may choose. Every kernel for which that number has no
bound uses `run_program`: it takes a function that yields the calls, and keeps the calls if they are few; otherwise they are made
again in each run, a few at a time. Calls that are kept are charged to the memory limit.
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

#: A function that yields the calls of a program, the same ones each time.
Calls = Callable[[], Iterable[Call]]

#: The least seconds of work to divide between threads: waking a thread and waiting for it takes up to 100 microseconds, two threads
#: that make calls of a few microseconds mostly wait for the GIL, and on a busy machine a thread may start late.
_WORTH_SHARING = 600e-6

#: Short operands make short inner loops; rows are joined until they are about this long.
_JOINED = 1024

#: The bytes of a call, with its arguments and two or three views; the most bytes of a program's calls; the number of calls up to
#: which they are not counted.
_CALL_BYTES, _KEPT_BYTES, _UNCOUNTED = 512, 1 << 25, 64


def run_calls(calls: Iterable[Call]) -> Callable[[], None]:
    """Return a function that executes the given numpy calls in order, for kernels with few calls."""
    return _running(list(watched_parts(calls)))


def run_program(make: Calls, call_bytes: int = _CALL_BYTES) -> Callable[[], None]:
    """Return a function that executes many numpy calls; if they are too many to keep, they are generated again in each run.

    Args:
        make: yields the calls.
        call_bytes: the memory of one call in bytes.

    Raises:
        CancelledError: the run was cancelled while the calls were generated.
        DeadlineError: the deadline passed while the calls were generated.
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
    """Generate numpy calls and execute them in order, without keeping any."""
    run_watched(watched_parts(make()))


def places(sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield all index tuples of an array of these sizes, last axis fastest, without storing ranges as `itertools.product` does."""
    if not sizes:
        yield ()
    elif prod(sizes):
        for first in range(sizes[0]):
            yield from map(tuple.__add__, repeat((first,)), places(sizes[1:]))


def lane_count(context: Context, seconds: float) -> int:
    """Return how many threads to use for work that takes one thread about `seconds` seconds."""
    return context.num_threads if seconds >= _WORTH_SHARING else 1


def run_lanes(context: Context, lanes: Sequence[Calls]) -> Iterator[Call]:
    """Yield numpy calls that execute several sequences of calls (lanes) in parallel on worker threads; for one lane, its calls."""
    if len(lanes) == 1:
        yield from lanes[0]()
    elif lanes:
        yield context.parallel([run_program(lane) for lane in lanes]), ()


def convert(target: Array, values: Array) -> None:
    """Copy `values` into `target`, converted to its type."""
    np.copyto(target, values, casting="unsafe")


@lru_cache(maxsize=4096)
def repeats(rows: int, columns: int) -> int:
    """Return how many rows to join into one, a divisor of `rows`, so that a tiled per-column operand gives a long inner loop."""
    wanted = max(1, min(rows, _JOINED // max(columns, 1)))
    return next(r for r in range(wanted, 0, -1) if rows % r == 0)


def repeated(values: Array, times: int) -> Array:
    """Return a flat copy of `values` tiled `times` times."""
    return values[None].repeat(times, 0).reshape(-1) if times > 1 else values
