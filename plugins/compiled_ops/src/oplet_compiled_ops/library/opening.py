"""The shared library of compiled kernels: chosen by the processor at its first use, opened by ctypes, and asked for addresses.

`libraries/` holds one library for each level (`levels`) that the package was built for, and a small one, `probe`, that tells which
of them the processor can run. OPLET_COMPILED_LEVEL names another level to use, to try a lower one.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from typing import Any

from oplet.records import Row

__all__ = [
    "SUFFIX",
    "VARIABLE",
    "MissingKernelError",
    "OpenLibrary",
    "c_function",
    "chosen_level",
    "folder",
    "levels_here",
    "library",
]

#: The environment variable that names the level to use in place of the highest that the processor has.
VARIABLE = "OPLET_COMPILED_LEVEL"
SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
#: The probe answers with a number: the place of the level among those of its architecture.
_PROBED = {
    "x86_64": ("x86-64-v2", "x86-64-v3", "x86-64-v4", "x86-64-v4-vnni"),
    "aarch64": ("aarch64", "aarch64-dotprod"),
}


class MissingKernelError(Exception):
    """No machine code for a kernel: no library for this machine, or not with these constants. The numpy kernel then serves the node."""


class OpenLibrary(Row):
    """An open library of kernels."""

    level: str  #: The level that it was compiled for.
    identity: str  #: A hash of the sources of its kernels.
    anchor: int  #: The address of its data `oplet_identity`; addresses of functions keep their distance to it in every process.
    functions: Any  #: Ctypes's library.

    def address(self, name: str) -> int:
        """Return the address of a function; 0 if the library has none of that name."""
        try:
            return ctypes.cast(getattr(self.functions, name), ctypes.c_void_p).value or 0
        except AttributeError:
            return 0


def folder() -> str:
    """Return the folder of the libraries."""
    return os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "libraries")  # pathlib takes long to import


def _path(name: str) -> str:
    return os.path.join(folder(), name + SUFFIX)


@functools.cache
def levels_here() -> tuple[str, ...]:
    """Return the processor levels whose libraries this processor can run, the lowest first; () if there are none.

    Raises:
        MissingKernelError: the package holds no libraries that this system can open.
    """
    try:
        probe = ctypes.CDLL(_path("probe"))
    except OSError as error:
        raise MissingKernelError(
            f"oplet-compiled-ops holds no machine code for this system ({sys.platform}, {_machine()}): {error}"
        ) from error
    machine = "aarch64" if probe.oplet_machine() else "x86_64"
    return _PROBED[machine][: probe.oplet_level() + 1]


def _machine() -> str:
    import platform

    return platform.machine()


@functools.cache
def chosen_level() -> str:
    """Return the processor level whose library is used: the highest that both the processor and the package support, or the one
    that the environment variable OPLET_COMPILED_LEVEL names.

    Raises:
        MissingKernelError: there is none, or the variable names one that the processor or the package does not support.
    """
    here = [level for level in levels_here() if os.path.exists(_path(level))]
    asked = os.environ.get(VARIABLE, "")
    if asked and asked not in here:
        _warn(f"{VARIABLE} is {asked!r:.80}, which is not one of {', '.join(here) or 'none'}, so that numpy's kernels serve.")
        raise MissingKernelError(f"{VARIABLE} is {asked!r:.80}, not one of {', '.join(here) or 'none'}")
    if not here:
        raise MissingKernelError("oplet-compiled-ops holds no machine code that this processor can run")
    return asked or here[-1]


@functools.cache  # once: each kernel asks
def _warn(text: str) -> None:
    import logging  # here, as most processes have nothing to log

    logging.getLogger("oplet.plugins").warning(text)


@functools.cache
def library() -> OpenLibrary:
    """Open the library of `chosen_level`, once per process.

    Raises:
        MissingKernelError: there is no library, or the system cannot open it.
    """
    level = chosen_level()
    try:
        functions = ctypes.CDLL(_path(level))
        stamp = (ctypes.c_char * 32).in_dll(functions, "oplet_identity")
    except (OSError, ValueError) as error:
        raise MissingKernelError(f"the library {level}{SUFFIX} of oplet-compiled-ops cannot be opened: {error}") from error
    return OpenLibrary(level, stamp.raw.decode("ascii", "replace"), ctypes.addressof(stamp), functions)


@functools.cache
def c_function(name: str) -> int:
    """Return the address of a function of the C library in this process; 0 if there is no function of that name."""
    try:
        return ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value or 0
    except (AttributeError, OSError, TypeError):  # TypeError: CDLL(None) is for POSIX
        return 0
