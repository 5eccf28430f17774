"""numpy's settings while kernels run: no floating-point warnings, a buffer size for fast broadcasting, and BLAS in one thread."""

from __future__ import annotations

import contextvars
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import numpy as np

from oplet.runtime.threads.blas import SINGLE_THREADED

__all__ = ["KernelNumpySettings", "apply_numpy_settings", "single_threaded_blas"]

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
