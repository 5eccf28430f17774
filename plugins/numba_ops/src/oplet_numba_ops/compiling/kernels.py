"""Compiling: a kernel is written as a function of Python, gets its one signature, and becomes machine code when it is first needed.

There are two ways to call the machine code: as a function of Python (`Kernel.compiled`), and by address, with all arguments in
words of memory (`Kernel.entry`), which is how the threads of `team` call it.

Machine code is cached on disk. Numba keeps it beside the module, or in the user's cache folder where that cannot be written, or
in the folder that NUMBA_CACHE_DIR names; where none of them can be written it is compiled anew in each process.
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
    """A number that changes with this package's sources: numba looks at a kernel's own file only, not at what it is made of."""
    digest = 0
    try:
        for path in sorted(Path(__file__).parents[1].rglob("*.py")):
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
        most_on_disk: how many kernels of the same function, with other constants, are kept on disk; the oldest go. None for all.
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
        """The machine code as a function, from the cache if it is there; it gives up the interpreter's lock while it runs.

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
        """Whether `entry` need not compile or load anything."""
        return self._entry is not None

    def entry(self) -> Entry:
        """The machine code by its address.

        Raises:
            CompileError: as `compiled` does.
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
        except Exception as error:  # of numba's many kinds, depending on its version
            name = self.function.__name__.strip("_")
            self._error = text_of(error, named=True)[:400]
            logger.warning("Numba cannot compile '%s', numpy serves in its place: %s", name, self._error)
            raise CompileError(self._error) from error

    @property
    def _options(self) -> dict[str, Any]:
        return {"boundscheck": False, "error_model": "numpy", "fastmath": self.fastmath}

    def _name(self) -> str:
        """A name that tells this kernel from all others: of the cache's file, as whose key numba takes the code alone for entries,
        and of the symbols in the machine code, of which the linker takes the first that it meets, whichever file it is from.
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
        compiled.disable_compile()  # other types are a mistake of the caller's, not a wish for another specialisation
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
            with suppress(OSError, AttributeError, TypeError):  # nothing is kept, or numba has another way to say where
                _keep_newest(Path(cache.cache_path), f"enter_{self._kind}_", self._most_on_disk)
        return Entry(compiled.address, tuple(kinds), compiled)


def _keep_newest(folder: Path, name: str, most: int) -> None:
    """Remove all but the newest kernels of a name from a folder of numba's; others may do the same."""
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
    """A kernel for callers that are machine code themselves: void(address of words).

    Args:
        address: of its machine code.
        kinds: numba's types of its arguments. An array takes a word for its address and one for each dimension, others take one
            word each, floats as float64.
        owner: keeps the machine code.
    """

    def __init__(self, address: int, kinds: Sequence[Any], owner: Any) -> None:
        self.address = address
        self._owner = owner
        # The dtype and dimensions of an array, or whether it is a float.
        self._kinds: list[tuple[np.dtype[Any], int] | bool] = []
        for kind in kinds:
            is_array = hasattr(kind, "ndim")
            self._kinds.append((np.dtype(str(kind.dtype)), kind.ndim) if is_array else str(kind).startswith("float"))

    def pack(self, arguments: Sequence[Any]) -> list[int]:
        """The words of the arguments. Whoever calls keeps the arrays alive. Read-only ones are taken too.

        Raises:
            TypeError: an argument is not of the type that the kernel is for.
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
    """Decorate a function to be compiled for `signature` when it is needed."""
    return lambda function: Kernel(function, signature, fastmath)
