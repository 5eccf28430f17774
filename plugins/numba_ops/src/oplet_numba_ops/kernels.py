"""Compiling: a kernel is written as a function of Python, gets its one signature, and becomes machine code when it is first needed.

Machine code is cached on disk. Numba keeps it beside the module, or in the user's cache folder where that cannot be written, or
in the folder that NUMBA_CACHE_DIR names; where none of them can be written it is compiled anew in each process.
"""

from __future__ import annotations

import functools
import logging
import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["CompileError", "Kernel", "kernel"]

logger = logging.getLogger("oplet.plugins")

_LOCK = threading.RLock()


@functools.cache
def _sources() -> str:
    """A number that changes with this package's sources: numba looks at a kernel's own file only, not at what it is made of."""
    digest = 0
    try:
        for path in sorted(Path(__file__).parent.glob("*.py")):
            digest = zlib.crc32(path.read_bytes(), digest)
    except OSError:  # not a folder: machine code is not cached then either
        return ""
    return f"{digest:08x}"


class CompileError(Exception):
    """A kernel cannot be compiled here; the numpy kernel serves then."""


class Kernel:
    """A function that is compiled for one signature, when it is needed.

    Args:
        function: in the subset of Python that numba compiles; it returns nothing and writes into its arguments.
        signature: numba's text for the types of its arguments, "void(f4[:,::1], f4[::1], i8)". Contiguous arrays are "[::1]".
        fastmath: which liberties with floats the compiler may take: False, True, or a set such as {"contract"}.
    """

    def __init__(self, function: Callable[..., Any], signature: str, fastmath: bool | set[str] = False) -> None:
        self.function = function
        self.signature = signature
        self.fastmath = fastmath
        self._compiled: Callable[..., Any] | None = None
        self._error = ""

    def compiled(self) -> Callable[..., Any]:
        """The machine code, from the cache if it is there; it gives up the interpreter's lock while it runs.

        Raises:
            CompileError: numba or LLVM refuses it; a warning says so, once.
        """
        if self._compiled is None:
            with _LOCK:
                if self._error:
                    raise CompileError(self._error)
                if self._compiled is None:
                    try:
                        self._compiled = self._compile()
                    except Exception as error:  # of numba's many kinds, depending on its version
                        name = self.function.__name__.strip("_")
                        self._error = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
                        logger.warning("Numba cannot compile '%s', numpy serves in its place: %s", name, self._error)
                        raise CompileError(self._error) from error
        return self._compiled

    def _compile(self) -> Callable[..., Any]:
        import llvmlite.binding as llvm
        import numba

        llvm.initialize_native_asmparser()  # for `dot_bytes`
        options: dict[str, Any] = {"nogil": True, "boundscheck": False, "error_model": "numpy", "fastmath": self.fastmath}
        self.function.__qualname__ = f"{self.function.__name__}_{_sources()}"  # part of the names of the cache's files
        try:
            compiled = numba.njit(cache=True, **options)(self.function)
        except RuntimeError:  # "no locator available": there is no folder to cache in
            compiled = numba.njit(**options)(self.function)
        compiled.compile(self.signature)
        compiled.disable_compile()  # other types are a mistake of the caller's, not a wish for another specialisation
        result: Callable[..., Any] = compiled
        return result


def kernel(signature: str, fastmath: bool | set[str] = False) -> Callable[[Callable[..., Any]], Kernel]:
    """Decorate a function to be compiled for `signature` when it is needed."""
    return lambda function: Kernel(function, signature, fastmath)
