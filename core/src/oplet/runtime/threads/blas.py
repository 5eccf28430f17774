"""How many threads OpenBLAS, to which numpy hands its matrix products, takes while models run: one.

By itself it takes as many as there are cores, whatever `num_threads` says, and its threads keep the cores busy for a while after
each product. Interpreters with more threads share out whole strips of layers instead (`workers.py`), bias and activation
included. With as many threads of its own, deep products were 1.3 to 1.8 times as fast on two idle cores, but whole models only
1.0 to 1.1 times, some sums differed in their last bits, and next to other programs models took up to ten times as long.
Another BLAS (MKL, Accelerate) keeps its own setting, which its environment variables change.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterator
from threading import Lock

import numpy as np

__all__ = ["SINGLE_THREADED", "SingleThreaded"]

#: What the names of its functions begin and end with, by who built it.
_SPELLINGS = (("scipy_", "64_"), ("scipy_", ""), ("", "64_"), ("", ""))


class SingleThreaded:
    """Holds a library to one thread while at least one interpreter runs, in any thread of the process.

    Args:
        count: asks the library for its number of threads.
        set_count: tells it.
    """

    def __init__(self, count: Callable[[], int], set_count: Callable[[int], None]) -> None:
        self._count = count
        self._set_count = set_count
        self._lock = Lock()
        self._running = 0
        self._before = 1

    def enter(self) -> None:
        """An interpreter starts to run."""
        with self._lock:
            if not self._running:
                self._before = self._count()
                if self._before != 1:
                    self._set_count(1)
            self._running += 1

    def leave(self) -> None:
        """It is done; the last one puts the number back."""
        with self._lock:
            self._running -= 1
            if not self._running and self._before != 1:
                self._set_count(self._before)


def _libraries() -> Iterator[str]:
    """Where OpenBLAS may be: beside numpy, or wherever it was loaded from."""
    package = os.path.dirname(np.__file__)  # pathlib would cost start-up some milliseconds
    for folder in (os.path.join(os.path.dirname(package), "numpy.libs"), os.path.join(package, ".dylibs")):
        names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
        yield from (os.path.join(folder, name) for name in names if "openblas" in name)
    if sys.platform == "linux":
        with open("/proc/self/maps") as maps:
            yield from sorted({line.split(maxsplit=5)[5].strip() for line in maps if "openblas" in line})


def _find() -> SingleThreaded | None:
    try:
        for path in _libraries():
            library = ctypes.CDLL(path)
            for prefix, suffix in _SPELLINGS:
                try:
                    count = library[f"{prefix}openblas_get_num_threads{suffix}"]
                    set_count = library[f"{prefix}openblas_set_num_threads{suffix}"]
                except AttributeError:
                    continue
                count.restype, count.argtypes = ctypes.c_int, ()
                set_count.restype, set_count.argtypes = None, (ctypes.c_int,)
                return SingleThreaded(count, set_count)
    except OSError:  # then it stays as it is
        return None
    return None


SINGLE_THREADED = _find()
