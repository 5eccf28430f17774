"""Background compilation in other processes; the numpy kernels serve the nodes meanwhile.

`ready` sees to the kernels that a model's nodes need: it loads their machine code from disk, or has it compiled. The compiler is
a process of its own, since numba holds the GIL: this process stays responsive, and survives a crash of the compiler. The compiler
stores what it compiles on disk, for later processes, and finishes the kernels that it was asked for even if this process ends
before.

The environment variable OPLET_COMPILE says when kernels are compiled: "background" (also if it is empty), "first" for in this
process, before the model's first answer, or "never", where only machine code that is on disk is used.
"""

from __future__ import annotations

import os
import threading

from oplet import checkpoint
from oplet_compiled_ops.compiling.kernels import CompileError, Kernel

__all__ = ["VARIABLE", "awaited", "provide", "wait"]

VARIABLE = "OPLET_COMPILE"
_MODES = ("background", "first", "never")

_local = threading.local()


def mode() -> str:
    """Return the value of the environment variable OPLET_COMPILE: "background" (also if it is not set), "first" or "never".

    Raises:
        CompileError: it has another value.
    """
    value = os.environ.get(VARIABLE, "") or _MODES[0]
    if value not in _MODES:
        raise CompileError(f"{VARIABLE} is {value!r}, which is none of {', '.join(_MODES)}.")
    return value


class _Awaited:
    """The context manager that `awaited` returns; a class, as a generator's overhead would count: it is entered for each node."""

    __slots__ = ("_outer",)

    def __enter__(self) -> list[Kernel]:
        self._outer = getattr(_local, "missing", None)
        missing: list[Kernel] = []
        _local.missing = missing
        return missing

    def __exit__(self, *_: object) -> None:
        _local.missing = self._outer


def awaited() -> _Awaited:
    """Return a context manager within which `provide` may leave kernels to the background compiler; `as` gives the list of these
    kernels.
    """
    return _Awaited()


def provide(kernel: Kernel) -> None:
    """Make a kernel ready: load it from disk, else queue it for the background compiler (within `awaited`), else compile it now.

    Raises:
        CompileError: it cannot be compiled here, or OPLET_COMPILE is "never" and it is not on disk.
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
        from oplet_compiled_ops.compiling.processes import compilers  # here, as most processes find all on disk

        if compilers().want(kernel):
            missing.append(kernel)
            return
    checkpoint()  # compiling may take a second
    kernel.entry()


def wait(kernel: Kernel) -> None:
    """Wait until a kernel is compiled, or has failed to compile."""
    from oplet_compiled_ops.compiling.processes import compilers

    compilers().wait(kernel)
