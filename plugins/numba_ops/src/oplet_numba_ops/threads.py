"""Kernels on several threads: each does a part of the rows; kernels give up the interpreter's lock."""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

__all__ = ["parts", "together"]


@functools.cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="oplet-numba")


def parts(count: int, threads: int, multiple: int = 1) -> list[tuple[int, int]]:
    """Cut `count` rows into at most so many ranges of nearly equal length, each but the last a multiple of `multiple`."""
    size = max(1, -(-count // (max(1, threads) * multiple))) * multiple
    return [(start, min(start + size, count)) for start in range(0, count, size)]


def together(function: Callable[..., Any], arguments: list[tuple[Any, ...]]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The call that runs `function` on each tuple of arguments, all but the first in threads of their own."""
    if len(arguments) == 1:
        return function, arguments[0]
    first, others = arguments[0], arguments[1:]

    def run() -> None:
        pool = _pool(len(others))
        running = [pool.submit(function, *each) for each in others]
        function(*first)
        for each in running:
            each.result()

    return run, ()
