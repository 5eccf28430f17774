"""Background compilation in other processes; the numpy kernels serve the nodes meanwhile.

`ready` sees to the kernels that a plan needs: it loads their machine code, or has it compiled. What compiles is a process of its own, since
numba holds Python's lock: this one stays responsive, and a crash of the compiler is not its own. It stores what it compiles on disk, for
the next process, and finishes what was asked of it if this process ends before.

OPLET_COMPILE says when kernels are compiled: "background" (or nothing), "first" for in this process, before the model's first answer,
or "never", where only what is on disk is used.
"""

from __future__ import annotations

import os
import threading

from oplet import checkpoint
from oplet_numba_ops.compiling.kernels import CompileError, Kernel

__all__ = ["VARIABLE", "awaited", "provide", "wait"]

VARIABLE = "OPLET_COMPILE"
_MODES = ("background", "first", "never")

_local = threading.local()


def mode() -> str:
    """Return the environment variable OPLET_COMPILE (when to compile), checked.

    Raises:
        CompileError: it is none of those that there are.
    """
    value = os.environ.get(VARIABLE, "") or _MODES[0]
    if value not in _MODES:
        raise CompileError(f"{VARIABLE} is {value!r}, which is none of {', '.join(_MODES)}.")
    return value


class _Awaited:
    """A reusable context manager without a generator's overhead, as it is entered for each node."""

    __slots__ = ("_outer",)

    def __enter__(self) -> list[Kernel]:
        self._outer = getattr(_local, "missing", None)
        missing: list[Kernel] = []
        _local.missing = missing
        return missing

    def __exit__(self, *_: object) -> None:
        _local.missing = self._outer


def awaited() -> _Awaited:
    """Return a context manager in which `provide` may compile in the background; its value lists the kernels not ready yet."""
    return _Awaited()


def provide(kernel: Kernel) -> None:
    """Make a kernel ready: load or compile it, or queue it for background compilation.

    Raises:
        CompileError: it cannot be compiled here.
    """
    if kernel.has_entry or kernel.load():
        return
    how = mode()
    if kernel.error:
        raise CompileError(kernel.error)
    if how == "never":
        raise CompileError(f"its kernel is not on disk, and {VARIABLE} is 'never'")
    missing = getattr(_local, "missing", None)
    if how == "background" and missing is not None:
        from oplet_numba_ops.compiling.processes import compilers  # here, as most processes find all on disk

        if compilers().want(kernel):
            missing.append(kernel)
            return
    checkpoint()  # compiling may take a second
    kernel.entry()


def wait(kernel: Kernel) -> None:
    """Wait until a kernel is compiled, or has failed to compile."""
    from oplet_numba_ops.compiling.processes import compilers

    compilers().wait(kernel)
