"""Kernels: a Python function compiled to machine code for one signature.

The machine code is called by its address with all arguments in an array of int64 slots (`Kernel.entry`), which is how the thread
pool (`threads.team`) calls it, or as a Python function (`Kernel.compiled`). It is loaded from disk (`machine_code.storage`)
without numba, or else compiled: now, by `Kernel.entry`, or by another process (`background`), while numpy's kernel serves.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib.util
import os
import struct
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oplet.errors import text_of
from oplet_compiled_ops.compiling.machine_code.image import Image, ImageError
from oplet_compiled_ops.compiling.machine_code.memory import loaded
from oplet_compiled_ops.compiling.machine_code.objects import loaded_object
from oplet_compiled_ops.compiling.machine_code.signatures import kinds
from oplet_compiled_ops.compiling.machine_code.storage import fetch, package_folder, store
from oplet_compiled_ops.compiling.memory import address
from oplet_compiled_ops.compiling.processor import identity

__all__ = ["ENTRIES", "IMAGE", "OBJECT", "CompileError", "Entry", "Kernel", "family", "kernel", "known"]

_LOCK = threading.RLock()
_FLOAT, _BITS = struct.Struct("d"), struct.Struct("q")
#: The functions of machine code: one that reads its arguments from words, and one that takes integers, for kernels of nothing else.
ENTRIES = ("enter", "direct")
#: The first byte of stored machine code: what follows is an image, or an object file.
IMAGE, OBJECT = b"I", b"O"
#: The most kernels of a function, with other constants or by other versions, on disk.
_MOST_ON_DISK = 256
#: All kernels of this process.
known: weakref.WeakSet[Kernel] = weakref.WeakSet()


@functools.cache
def _origin() -> str:
    """Return a string of all that machine code depends on besides the kernel: sizes and times of sources, numba, Python,
    processor.
    """
    stamps = []
    try:
        for path, _, names in os.walk(package_folder()):
            for name in names:
                if name.endswith(".py"):
                    found = os.stat(os.path.join(path, name))
                    stamps.append((path, name, found.st_size, found.st_mtime_ns))
    except OSError:
        stamps.clear()
    for module in ("numba", "llvmlite"):  # their versions are in their metadata, which takes longer to read
        spec = importlib.util.find_spec(module)
        if spec is not None and spec.origin:
            stamps.append((spec.origin, module, os.stat(spec.origin).st_size, os.stat(spec.origin).st_mtime_ns))
    return f"{sorted(stamps)} {sys.implementation.cache_tag} {sys.platform} {identity()}"


def _logger() -> Any:
    import logging  # here, as most processes have nothing to log

    return logging.getLogger("oplet.plugins")


class CompileError(Exception):
    """Raised for a kernel that cannot be compiled on this machine; the numpy kernel then serves the node."""


class Kernel:
    """A function compiled for one signature at first use, cached on disk.

    Args:
        function: Python in the subset that numba compiles; it returns nothing, writes into its arguments, and allocates nothing.
            Other functions that it calls are `lazy.inlined` or `lazy.emitted`.
        signature: the types of its arguments in numba's notation, "void(f4[:,::1], f4[::1], i8)"; arrays are contiguous, "[::1]".
        fastmath: the floating-point transformations that the compiler may make: False, True, or a set such as {"contract"}.
        most_on_disk: how many kernels of this function, compiled with different constants, the disk cache keeps; the oldest are
            removed.

    Attributes:
        family: module, name and arguments of the function decorated with `family` that made the kernel, by which another process
            makes the same one; None if the kernel is a module's global.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        signature: str,
        fastmath: bool | set[str] = False,
        *,
        most_on_disk: int = _MOST_ON_DISK,
    ) -> None:
        self.function = function
        self.signature = signature
        self.fastmath = fastmath
        self.family: tuple[str, str, tuple[Any, ...]] | None = None
        self._most_on_disk = most_on_disk
        self._compiled: Callable[..., Any] | None = None
        self._by_words: Callable[[int], None] | None = None
        self._entry: Entry | None = None
        self._error = ""
        self._looked_for = False
        known.add(self)

    @functools.cached_property
    def name(self) -> str:
        """Cache key: the function's name plus a hash of all that the machine code depends on."""
        constants = [cell.cell_contents for cell in self.function.__closure__ or ()]
        options = sorted(self.fastmath) if isinstance(self.fastmath, set) else self.fastmath
        text = f"{_origin()} {self.function.__module__} {self.function.__qualname__} {self.signature} {options} {constants}"
        return f"{self.function.__name__.strip('_')}-{hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}"

    @property
    def has_entry(self) -> bool:
        """Whether the machine code is loaded, so that `entry` returns at once."""
        return self._entry is not None

    @property
    def error(self) -> str:
        """Why the kernel cannot be compiled; "" if it can, or nobody tried yet."""
        return self._error

    def load(self) -> bool:
        """Try to load the machine code from the disk cache, in the first call only; return whether it is loaded, so that nothing
        must compile.
        """
        if self._entry is None and not self._looked_for:
            with _LOCK:
                self._looked_for = True
                content = fetch(self.name)
                if content is not None and self._entry is None:
                    self._take(content)
        return self._entry is not None

    def entry(self) -> Entry:
        """Return the loaded machine code with its address; it is compiled first if it is not in the disk cache.

        Raises:
            CompileError: numba or LLVM refuses the kernel; a warning is logged, once.
        """
        if self._entry is None:
            if self._error:
                raise CompileError(self._error)
            with _LOCK:
                if not self.load():
                    self.adopt(self.made())
        if self._entry is None:
            raise CompileError(self._error)
        return self._entry

    def compiled(self) -> Callable[..., Any]:
        """Return the machine code as a Python function of the kernel's arguments, which releases the GIL.

        Raises:
            CompileError: numba or LLVM refuses the kernel.
        """
        if self._compiled is None:
            self._compiled = self.entry().function()
        return self._compiled

    def by_words(self) -> Callable[[int], None]:
        """Return the machine code as a Python function of the address of its int64 argument slots, which releases the GIL.

        A call takes a third of a microsecond less than one of several arguments.

        Raises:
            CompileError: numba or LLVM refuses the kernel.
        """
        if self._by_words is None:
            self._by_words = self.entry().by_words()
        return self._by_words

    def made(self) -> bytes:
        """Compile the kernel, store its machine code in the disk cache, and return it as the bytes that `adopt` loads.

        Raises:
            CompileError: numba or LLVM refuses the kernel.
        """
        from oplet_compiled_ops.compiling.compiler import machine_code

        try:
            content = machine_code(self)
        except Exception as error:  # numba raises many classes, which depend on its version
            self.fail(text_of(error, named=True))
            raise CompileError(self._error) from error
        store(self.name, content, self._most_on_disk)
        return content

    def adopt(self, content: bytes) -> None:
        """Load machine code that `made` returned, in this process or in another one.

        Raises:
            CompileError: it cannot be loaded here.
        """
        with _LOCK:
            if self._entry is None and not self._take(content):
                self.fail("its machine code cannot be loaded here")
                raise CompileError(self._error)

    def fail(self, reason: str) -> None:
        """Record that the kernel cannot be compiled, and why, and log a warning the first time; numpy's kernel then serves the
        nodes.
        """
        if not self._error:
            self._error = reason[:400]
            _logger().warning(
                "Numba cannot compile '%s', numpy serves in its place: %s", self.function.__name__.strip("_"), self._error
            )

    def _take(self, content: bytes) -> bool:
        try:
            addresses = loaded(Image.from_bytes(content[1:])) if content[:1] == IMAGE else loaded_object(content[1:], ENTRIES)
            self._entry = Entry(addresses, self.signature)
        except (ImageError, KeyError) as error:
            _logger().debug("The machine code of '%s' is not loaded: %s", self.name, error)
            return False
        return True


class Entry:
    """Loaded machine code with the C signature void(int64_t *slots).

    Args:
        addresses: the addresses of the kernel's functions in memory, by their names in `ENTRIES`.
        signature: the types of its arguments, in numba's notation. An array takes one slot for its address and one for each
            length, a number one slot, as int64 or as the bits of a float64.

    Attributes:
        address: the address of the C function that takes the address of the slots.
    """

    def __init__(self, addresses: dict[str, int], signature: str) -> None:
        self.address = addresses["enter"]
        self._direct = addresses.get("direct", 0)
        self._kinds = kinds(signature)
        self._floats = [not ndim and dtype.kind == "f" for dtype, ndim in self._kinds]
        self._has_arrays = any(ndim for _, ndim in self._kinds)

    def function(self) -> Callable[..., Any]:
        """Return a Python function that takes the kernel's arguments (arrays and numbers) and runs the machine code."""
        if self._direct:
            return ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * len(self._kinds))(self._direct)
        call = self.by_words()

        def run(*arguments: Any) -> None:
            words: Any = np.array(self.pack(arguments), np.int64)
            call(address(words))

        return run

    def by_words(self) -> Callable[[int], None]:
        """Return a Python function that takes the address of the packed int64 argument slots and runs the machine code."""
        return ctypes.CFUNCTYPE(None, ctypes.c_int64)(self.address)

    def pack(self, arguments: Sequence[Any]) -> list[int]:
        """Return the arguments as int64 slots (see the class); arrays may be read-only, and the caller keeps them alive.

        Raises:
            TypeError: there are too many or too few arguments, or an array is not contiguous or not of the kernel's type.
        """
        if len(arguments) != len(self._kinds):
            raise TypeError(f"The kernel takes {len(self._kinds)} arguments, not {len(arguments)}.")
        if not self._has_arrays:
            words = list(arguments)
            for at, is_float in enumerate(self._floats):
                if is_float:
                    words[at] = _BITS.unpack(_FLOAT.pack(words[at]))[0]
                elif words[at].__class__ is not int:
                    words[at] = int(words[at])
            return words
        words = []
        for (dtype, ndim), is_float, argument in zip(self._kinds, self._floats, arguments):
            if ndim:
                if argument.__class__ is not np.ndarray and not isinstance(argument, np.ndarray):
                    raise TypeError(f"The kernel takes {ndim} dimensions of {dtype}, not {argument!r}.")
                kind, shape = argument.dtype, argument.shape
                if (kind is not dtype and kind != dtype) or len(shape) != ndim:
                    raise TypeError(f"The kernel takes {ndim} dimensions of {dtype}, not {kind!r}.")
                if not argument.flags.c_contiguous:
                    raise TypeError("The kernel takes contiguous arrays only.")
                words.append(address(argument))
                words += shape
            elif is_float:
                words.append(_BITS.unpack(_FLOAT.pack(argument))[0])
            else:
                words.append(argument if argument.__class__ is int else int(argument))
        return words


def kernel(signature: str, fastmath: bool | set[str] = False) -> Callable[[Callable[..., Any]], Kernel]:
    """Return a decorator that makes a function a `Kernel`, compiled for `signature` at first use."""
    return lambda function: Kernel(function, signature, fastmath)


def family(make: Callable[..., Kernel]) -> Callable[..., Kernel]:
    """Decorate a function that makes a kernel from constants, as there is one kernel for each: results are cached.

    The constants are numbers, strings and bools, by position; with them and the function's name another process makes the same
    kernel.
    """

    @functools.cache
    def one(*constants: Any) -> Kernel:
        result = make(*constants)
        result.family = make.__module__, make.__name__, constants
        return result

    return functools.update_wrapper(one, make, ("__module__", "__name__", "__qualname__", "__doc__"))
