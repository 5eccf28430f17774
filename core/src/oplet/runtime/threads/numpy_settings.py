"""How numpy behaves while kernels run.

It says nothing about infinities, goes through broadcast operands quickly, and multiplies matrices in one thread.
"""

from __future__ import annotations

import contextvars
from types import TracebackType
from typing import Any

import numpy as np

from oplet.runtime.threads.blas import SINGLE_THREADED

__all__ = ["KernelNumpySettings", "apply_numpy_settings"]

#: Elements. Where an operand is repeated along an axis whose inner part is shorter than numpy's buffer (8192 elements
#: unless it is told otherwise), numpy copies that operand again and again into its buffer; adding a bias to each row takes
#: twice as long. Operands that are cast to another type pass through the buffer as well, which stays in the cache this way.
_BUFFER = 512


def apply_numpy_settings() -> None:
    """Set numpy up for kernels in this thread, for good; the first thing that a thread of `Workers` does."""
    # Infinities and NaNs are values like any other: numpy's warnings about them say nothing about the program.
    np.seterr(all="ignore")
    np.setbufsize(_BUFFER)


def _settings() -> tuple[contextvars.ContextVar[Any], Any] | None:
    """The context variable in which numpy 2 keeps its settings, and the value that stands for ours.

    Setting it takes a twentieth of the time of asking numpy, which matters to small models. None where numpy keeps them
    elsewhere, as numpy 1 does.
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
    """A context manager for one use: numpy's settings for kernels in this thread, and the settings of before at its end."""

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        if SINGLE_THREADED is not None:
            SINGLE_THREADED.enter()
        if _SETTINGS is not None:
            self._before: Any = _SETTINGS[0].set(_SETTINGS[1])
        else:
            self._before = np.geterr(), np.getbufsize()
            apply_numpy_settings()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if SINGLE_THREADED is not None:
            SINGLE_THREADED.leave()
        if _SETTINGS is not None:
            _SETTINGS[0].reset(self._before)
        else:
            errors, size = self._before
            np.seterr(**errors)
            np.setbufsize(size)
