"""How long a list of numpy calls may run between two looks at the clock: as long as their work, not their number, allows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from oplet import checkpoint

__all__ = ["Call", "call_work", "run_watched", "watched_parts"]

#: A function and its arguments.
Call = tuple[Callable[..., Any], tuple[Any, ...]]

#: Values that calls work on between two looks; numpy needs about 0.1 to 10 ms for them.
_WORK = 1 << 20
#: Calls between two looks, however little they do.
_CALLS = 64
#: Products that BLAS adds up while an elementwise call works on one value, and that numpy's own loops do.
_BLAS, _LOOPS = 16, 1


def call_work(call: Call) -> int:
    """About how many values a call works on; what cannot be told counts as what is done between two looks."""
    function, arguments = call
    work = 0
    for argument in arguments:
        if type(argument) is np.ndarray and argument.size > work:
            work = argument.size
    if function is np.matmul or function is np.dot:
        left, right = arguments[:2]
        if right.ndim > 1:
            work = max(work, left.size * right.shape[-1] // (_BLAS if left.dtype.kind in "fc" else _LOOPS))
    elif not work:
        owner = getattr(function, "__self__", None)  # a method of an array, such as fill
        work = owner.size if type(owner) is np.ndarray else 0 if arguments else _WORK
    return work


def watched_parts(calls: Iterable[Call]) -> Iterator[tuple[Call, ...]]:
    """The calls in pieces, each of as much work as may be done between two looks at the clock, or of one call."""
    part: list[Call] = []
    left = _WORK
    for call in calls:
        part.append(call)
        left -= call_work(call)
        if left <= 0 or len(part) == _CALLS:
            yield tuple(part)
            part, left = [], _WORK
    if part:
        yield tuple(part)


def run_watched(parts: Iterable[tuple[Call, ...]]) -> None:
    """Make the calls, and look at the clock before each part."""
    for part in parts:
        checkpoint()
        for function, arguments in part:
            function(*arguments)
