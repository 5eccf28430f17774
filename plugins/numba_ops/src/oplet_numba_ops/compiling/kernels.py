"""Compilation of kernels: a Python function with one signature, compiled to machine code when it is first needed.

The machine code can be called as a Python function (`Kernel.compiled`), or by its address with all arguments in words of memory
(`Kernel.entry`), which is how the threads of `team` call it.

Machine code is cached on disk: beside the module, or in the user's cache folder if that is not writeable, or in the folder that
NUMBA_CACHE_DIR names. If none of them is writeable, each process compiles anew.
"""

from __future__ import annotations

import functools
import glob
import hashlib
import logging
import struct
import threading
import types
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from oplet.errors import text_of
from oplet_numba_ops.compiling.memory import address

__all__ = ["CompileError", "Entry", "Kernel", "kernel"]

logger = logging.getLogger("oplet.plugins")

_LOCK = threading.RLock()
_FLOAT, _BITS = struct.Struct("d"), struct.Struct("q")


@functools.cache
def _sources() -> str:
    """A hash of this package's sources, for the cache: numba itself only checks the file that defines the kernel."""
    digest = 0
    try:
        for path in sorted(Path(__file__).parents[1].rglob("*.py")):
            digest = zlib.crc32(path.read_bytes(), digest)
    except OSError:  # the package is no folder; machine code is not cached then either
        return ""
    return f"{digest:08x}"


class CompileError(Exception):
    """The error of a kernel that cannot be compiled here; the numpy kernel serves the node then."""


class Kernel:
    """A function that is compiled for one signature when it is first needed.

    Args:
        function: Python in the subset that numba compiles; it returns nothing and writes into its arguments.
        signature: the types of its arguments in numba's notation, "void(f4[:,::1], f4[::1], i8)"; contiguous arrays are
            "[::1]".
        fastmath: the floating-point transformations that the compiler may make: False, True, or a set such as {"contract"}.
        most_on_disk: the most kernels of the same function with other constants in the disk cache, of which the oldest are
            removed; None for no limit.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        signature: str,
        fastmath: bool | set[str] = False,
        *,
        most_on_disk: int | None = None,
    ) -> None:
        self.function = function
        self.signature = signature
        self.fastmath = fastmath
        self._most_on_disk = most_on_disk
        self._kind = function.__name__
        self._compiled: Callable[..., Any] | None = None
        self._entry: Entry | None = None
        self._error = ""

    def compiled(self) -> Callable[..., Any]:
        """The machine code as a Python function, from the cache if possible; it releases the GIL while it runs.

        Raises:
            CompileError: numba or LLVM refuses it; a warning says so, once.
        """
        if self._compiled is None:
            with _LOCK:
                if self._compiled is None:
                    self._compiled = self._guarded(self._compile)
        return self._compiled

    @property
    def has_entry(self) -> bool:
        """Whether `entry` is ready, without compiling or loading."""
        return self._entry is not None

    def entry(self) -> Entry:
        """The machine code with its address.

        Raises:
            CompileError: as for `compiled`.
        """
        if self._entry is None:
            with _LOCK:
                if self._entry is None:
                    self._entry = self._guarded(self._compile_entry)
        return self._entry

    def _guarded(self, compile: Callable[[], Any]) -> Any:
        if self._error:
            raise CompileError(self._error)
        try:
            return compile()
        except Exception as error:  # numba raises many classes, which depend on its version
            name = self.function.__name__.strip("_")
            self._error = text_of(error, named=True)[:400]
            logger.warning("Numba cannot compile '%s', numpy serves in its place: %s", name, self._error)
            raise CompileError(self._error) from error

    @property
    def _options(self) -> dict[str, Any]:
        return {"boundscheck": False, "error_model": "numpy", "fastmath": self.fastmath}

    def _name(self) -> str:
        """A unique name of this kernel: for the cache file, whose key numba makes of the code alone for entries, and for the
        symbols in the machine code, as the linker takes the first symbol of a name whichever file it is from.
        """
        constants = [cell.cell_contents for cell in self.function.__closure__ or ()]
        text = f"{self.function.__module__} {self.signature} {self.fastmath} {constants}"
        return f"{self.function.__name__}_{_sources()}{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"

    def _compile(self) -> Callable[..., Any]:
        import llvmlite.binding as llvm
        import numba

        llvm.initialize_native_asmparser()  # for `dot_bytes`
        self.function.__qualname__ = self._name()
        try:
            compiled = numba.njit(cache=True, nogil=True, **self._options)(self.function)
        except RuntimeError:  # "no locator available": there is no folder to cache in
            compiled = numba.njit(nogil=True, **self._options)(self.function)
        compiled.compile(self.signature)
        compiled.disable_compile()  # calling it with other types is an error, not a request for another specialization
        result: Callable[..., Any] = compiled
        return result

    def _compile_entry(self) -> Entry:
        import llvmlite.binding as llvm
        import numba
        from numba.core.sigutils import normalize_signature

        from oplet_numba_ops.compiling.arguments import unpacker

        llvm.initialize_native_asmparser()
        kinds, _ = normalize_signature(self.signature)
        self.function.__qualname__ = name = self._name()
        names = {"kernel": numba.njit(**self._options)(self.function), "unpack": unpacker(tuple(kinds)), "__name__": __name__}
        function = types.FunctionType(_enter.__code__, names)
        function.__qualname__ = f"enter_{name}"
        try:
            compiled = numba.cfunc("void(i8)", cache=True, **self._options)(function)
        except RuntimeError:
            compiled = numba.cfunc("void(i8)", **self._options)(function)
        if self._most_on_disk is not None:
            cache: Any = getattr(compiled, "_cache", None)
            with suppress(
                OSError, AttributeError, TypeError
            ):  # there is no cache, or this version of numba has another attribute for its folder
                _keep_newest(Path(cache.cache_path), f"enter_{self._kind}_", self._most_on_disk)
        return Entry(compiled.address, tuple(kinds), compiled)


def _keep_newest(folder: Path, name: str, most: int) -> None:
    """Remove all but the newest kernels of a name from a cache folder; other processes may do the same at the same time."""
    kept = []
    for index in folder.glob(f"*.{name}*.nbi"):
        with suppress(OSError):
            kept.append((index.stat().st_mtime_ns, index))
    for _, index in sorted(kept)[:-most]:
        for path in folder.glob(f"{glob.escape(index.stem)}.*"):  # its index, and machine code for each processor
            path.unlink(missing_ok=True)


def _enter(words):  # type: ignore[no-untyped-def]
    kernel(*unpack(words))  # type: ignore[name-defined]  # noqa: F821


class Entry:
    """A kernel as a function of machine code: void(address of words).

    Args:
        address: the address of its machine code.
        kinds: numba's types of its arguments. An array takes one word for its address and one for each dimension, a number one
            word, floats as float64.
        owner: an object that keeps the machine code alive.
    """

    def __init__(self, address: int, kinds: Sequence[Any], owner: Any) -> None:
        self.address = address
        self._owner = owner
        # The dtype and the number of dimensions of an array; for numbers, whether it is a float.
        self._kinds: list[tuple[np.dtype[Any], int] | bool] = []
        for kind in kinds:
            is_array = hasattr(kind, "ndim")
            self._kinds.append((np.dtype(str(kind.dtype)), kind.ndim) if is_array else str(kind).startswith("float"))

    def pack(self, arguments: Sequence[Any]) -> list[int]:
        """The words of the arguments. The caller keeps the arrays alive. Read-only arrays are accepted.

        Raises:
            TypeError: an argument has another type than the kernel's.
        """
        words: list[int] = []
        if len(arguments) != len(self._kinds):
            raise TypeError(f"The kernel takes {len(self._kinds)} arguments, not {len(arguments)}.")
        for kind, argument in zip(self._kinds, arguments):
            if isinstance(kind, tuple):
                dtype, ndim = kind
                if not isinstance(argument, np.ndarray) or argument.dtype != dtype or argument.ndim != ndim:
                    raise TypeError(
                        f"The kernel takes {ndim} dimensions of {dtype}, not {getattr(argument, 'dtype', argument)!r}."
                    )
                if not argument.flags.c_contiguous:
                    raise TypeError("The kernel takes contiguous arrays only.")
                words.append(address(argument))
                words.extend(argument.shape)
            elif kind:
                words.append(_BITS.unpack(_FLOAT.pack(argument))[0])
            else:
                words.append(int(argument))
        return words


def kernel(signature: str, fastmath: bool | set[str] = False) -> Callable[[Callable[..., Any]], Kernel]:
    """A decorator: a `Kernel` of the function, compiled for `signature` when it is first needed."""
    return lambda function: Kernel(function, signature, fastmath)
