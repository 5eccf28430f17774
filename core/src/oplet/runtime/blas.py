"""numpy's settings while kernels run: no floating-point warnings, a buffer size for fast broadcasting, and the number of threads of
OpenBLAS, which computes numpy's matrix products: one.

By default OpenBLAS uses as many threads as there are cores, whatever `num_threads` is, and they keep the cores busy for a while after
each product. Interpreters with several threads divide whole strips of layers between them instead (`workers.py`), bias and activation
included. With OpenBLAS's own threads deep products were 1.3 to 1.8 times as fast on two idle cores, but whole models only 1.0 to
1.1 times; some sums differed in their last bits, and models took up to ten times as long next to other programs.
Other BLAS libraries (MKL, Accelerate) keep their own settings, which their environment variables change.
"""

from __future__ import annotations

import contextvars
import ctypes
import os
import sys
from _thread import RLock
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import numpy as np

__all__ = [
    "SINGLE_THREADED",
    "KernelNumpySettings",
    "SingleThreaded",
    "apply_numpy_settings",
    "find_openblas",
    "single_threaded_blas",
]


#: The size of numpy's ufunc buffer in elements, 8192 by default. Where an operand is broadcast along an axis whose inner part is
#: shorter than the buffer, numpy copies it into the buffer again and again, and adding a bias to each row takes twice as long.
#: Operands that are cast to another type pass through the buffer too, and a small one stays in the cache.
_BUFFER = 512


def apply_numpy_settings() -> None:
    """Apply numpy's settings for kernels (no warnings, a larger buffer) to this thread for good; for the threads of `Workers`."""
    # Infinities and NaNs are ordinary results of kernels, and no reason for a warning.
    np.seterr(all="ignore")
    np.setbufsize(_BUFFER)


def _settings() -> tuple[contextvars.ContextVar[Any], Any] | None:
    """Return the context variable in which numpy 2 keeps its settings, and its value for kernels; None for numpy 1.

    Setting the variable takes a twentieth of the time of calling numpy's functions, which matters to small models.
    """
    if int(np.__version__.partition(".")[0]) < 2:
        return None
    context = contextvars.copy_context()
    before = dict(context)
    context.run(apply_numpy_settings)
    changed = [(variable, value) for variable, value in context.items() if before.get(variable) is not value]
    return changed[0] if len(changed) == 1 else None


_SETTINGS = _settings()


class KernelNumpySettings:
    """A context manager, for one use, that sets numpy's settings for kernels in this thread and restores those before."""

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        SINGLE_THREADED.enter()
        if _SETTINGS is not None:
            self._before: Any = _SETTINGS[0].set(_SETTINGS[1])
        else:
            self._before = np.geterr(), np.getbufsize()
            apply_numpy_settings()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        SINGLE_THREADED.leave()
        if _SETTINGS is not None:
            _SETTINGS[0].reset(self._before)
        else:
            errors, size = self._before
            np.seterr(**errors)
            np.setbufsize(size)


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Context manager that keeps BLAS in one thread throughout several runs, in place of switching it for each of them."""
    SINGLE_THREADED.enter()
    try:
        yield
    finally:
        SINGLE_THREADED.leave()


#: Prefixes and suffixes of the library's function names, which depend on the build.
_SPELLINGS = (("scipy_", "64_"), ("scipy_", ""), ("", "64_"), ("", ""))


class SingleThreaded:
    """Sets a library's number of threads to one while at least one interpreter runs in the process.

    Args:
        count: returns the library's number of threads.
        set_count: sets it.
    """

    def __init__(self, count: Callable[[], int], set_count: Callable[[int], None]) -> None:
        self._count = count
        self._set_count = set_count
        self._lock = RLock()  # reentrant: a destructor, which may run an interpreter, may run anywhere
        self._running = 0
        self._before = 1
        self._forked_while_running = False
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def enter(self) -> None:
        """Note that an interpreter starts to run; the first one sets the number of threads to one."""
        with self._lock:
            if not self._running:
                if not self._forked_while_running:  # else the count is the one that was set for the parent's runs
                    self._before = self._count()
                self._forked_while_running = False
                if self._before != 1:
                    self._set_count(1)
            self._running += 1

    def leave(self) -> None:
        """Note that an interpreter is done; the last one restores the number of threads."""
        with self._lock:
            self._running = max(0, self._running - 1)  # a process that was forked in the middle of a run may end that run
            if not self._running and self._before != 1:
                self._set_count(self._before)

    def _forget(self) -> None:
        """Begin anew in a forked process, which has no copies of the parent's threads, one of which may have held the lock."""
        self._lock = RLock()
        self._forked_while_running = self._forked_while_running or self._running > 0
        self._running = 0


def _libraries() -> Iterator[str]:
    """Paths where OpenBLAS may be: beside numpy, or among the libraries that the process has loaded."""
    package = os.path.dirname(np.__file__)  # pathlib would cost start-up some milliseconds
    for folder in (os.path.join(os.path.dirname(package), "numpy.libs"), os.path.join(package, ".dylibs")):
        names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
        yield from (os.path.join(folder, name) for name in names if "openblas" in name)
    if sys.platform == "linux":
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
            yield from sorted({line.split(maxsplit=5)[5].strip() for line in maps if "openblas" in line})


def find_openblas() -> SingleThreaded | None:
    """Return the switch of numpy's OpenBLAS; None where numpy multiplies with another library."""
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
    except OSError:  # it keeps its number of threads
        pass
    return None


#: That of this process; it changes nothing where there is no OpenBLAS.
SINGLE_THREADED = find_openblas() or SingleThreaded(lambda: 1, lambda count: None)
