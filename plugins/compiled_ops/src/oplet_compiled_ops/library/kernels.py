"""Kernels: Python functions that the package's build compiles to machine code, one for each signature (and each set of constants).

The machine code is called by its address with all arguments in an array of int64 slots (`Kernel.entry`), which is how the thread
pool (`threads.team`) calls it, or as a Python function (`Kernel.compiled`). The Python function itself never runs: a process that
runs models needs a kernel's name and signature only, so that a kernel may be declared where its arguments are written, by the path
of its function, whose module nobody but the build imports (`Kernel("pooling.windows:maximum", ...)`, `family_of`).
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import re
import struct
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from oplet.records import Row
from oplet_compiled_ops.library.memory import address
from oplet_compiled_ops.library.opening import MissingKernelError, library

__all__ = [
    "DIRECT",
    "FAMILIES",
    "Entry",
    "Kernel",
    "Kind",
    "MissingKernelError",
    "built_with",
    "family",
    "family_of",
    "kernel",
    "kinds",
    "known",
]


class Kind(Row):
    """The type of one argument: dtype and number of dimensions, 0 for a scalar."""

    dtype: np.dtype  #: The type of its numbers.
    ndim: int  #: The number of dimensions of a contiguous array; 0 for a number.

    @property
    def is_float(self) -> bool:
        return self.dtype.kind == "f"


def kinds(signature: str) -> tuple[Kind, ...]:
    """Parse a signature; return the types of its arguments."""
    text = signature.removeprefix("void(").removesuffix(")")
    parts = [part.partition("[") for part in text.split(", ")]  # no axes have ", " within
    return tuple([Kind(np.dtype(number), axes.count(",") + 1 if axes else 0) for number, _, axes in parts])


try:
    from _blake2 import blake2b  # what hashlib has for it: importing that also loads OpenSSL
except ImportError:
    from hashlib import blake2b

_PACKAGE = "oplet_compiled_ops."
#: What is behind a kernel's name in the name of its second function, which takes integers, for kernels of nothing else.
DIRECT = "__direct"
#: All kernels of this process.
known: weakref.WeakSet[Kernel] = weakref.WeakSet()
#: The families of kernels: the function that makes one of constants, and the one that gives the constants of all that are built.
FAMILIES: list[tuple[Callable[..., Kernel], Callable[[], Iterable[tuple[Any, ...]]]]] = []


class Kernel:
    """A function that is compiled, for one signature, when the package is built.

    Args:
        function: Python in the subset that numba compiles; it returns nothing, writes into its arguments, and allocates nothing.
            Other functions that it calls are `lazy.inlined` or `lazy.emitted`. Or its path, "module:name" below this package.
        signature: the types of its arguments in numba's notation, "void(f4[:,::1], f4[::1], i8)"; arrays are contiguous, "[::1]".
        fastmath: the floating-point transformations that the compiler may make: False, True, or a set such as {"contract"}.
        constants: of a member of a family: the arguments with which the function at the path makes that of the kernel.

    Attributes:
        name: the name of its machine code in the libraries.
        is_member: whether it is one of a family (`family`, `family_of`).
        declared_at: the path of its function, if it was declared by that; otherwise "".
    """

    def __init__(
        self,
        function: Callable[..., Any] | str,
        signature: str,
        fastmath: bool | set[str] = False,
        constants: Sequence[Any] | None = None,
    ) -> None:
        self._function = function
        self.signature = signature
        self.fastmath = fastmath
        self.declared_at = function if isinstance(function, str) else ""
        path = function if isinstance(function, str) else f"{function.__module__}:{function.__name__}"
        told = [blake2b(signature.encode(), digest_size=3).hexdigest()] if constants is None else map(_told, constants)
        self.name = _named(path, *told)
        self.is_member = constants is not None
        self._constants = constants
        self._compiled: Callable[..., Any] | None = None
        self._by_words: Callable[[int], None] | None = None
        self._entry: Entry | None = None
        known.add(self)

    @property
    def function(self) -> Callable[..., Any]:
        """The Python function, imported if the kernel was declared by its path."""
        if isinstance(self._function, str):
            found = _at(self._function)
            self._function = found if self._constants is None else found(*self._constants)
        return self._function

    @property
    def exists(self) -> bool:
        """Whether the library has machine code for the kernel."""
        try:
            self.entry()
        except MissingKernelError:
            return False
        return True

    def entry(self) -> Entry:
        """Return the machine code with its address.

        Raises:
            MissingKernelError: the library has no such kernel, or there is no library for this machine.
        """
        if self._entry is None:
            found = library()
            address = found.address(self.name)
            if not address:
                raise MissingKernelError(f"the library for {found.level} has no kernel {self.name}")
            self._entry = Entry(address, found.address(self.name + DIRECT), self.signature)
        return self._entry

    @property
    def address(self) -> int | None:
        """The address of the machine code; None if it was not loaded yet."""
        return None if self._entry is None else self._entry.address

    def compiled(self) -> Callable[..., Any]:
        """Return the machine code as a Python function of the kernel's arguments, which releases the GIL.

        Raises:
            MissingKernelError: the library has no such kernel.
        """
        if self._compiled is None:
            self._compiled = self.entry().function()
        return self._compiled

    def by_words(self) -> Callable[[int], None]:
        """Return the machine code as a Python function of the address of its int64 argument slots, which releases the GIL.

        A call takes a third of a microsecond less than one of several arguments.

        Raises:
            MissingKernelError: the library has no such kernel.
        """
        if self._by_words is None:
            self._by_words = self.entry().by_words()
        return self._by_words


def _at(path: str) -> Callable[..., Any]:
    module, _, name = path.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(_PACKAGE + module), name)
    return found


def _told(constant: Any) -> Any:
    return int(constant) if isinstance(constant, bool) else constant


def _named(*parts: Any) -> str:
    return re.sub(r"\W", "_", "_".join(map(str, parts)).removeprefix(_PACKAGE))


class Entry:
    """Loaded machine code with the C signature void(int64_t *slots).

    Args:
        address: the address of the function that reads its arguments from slots.
        direct: the address of the one that takes integers; 0 if the kernel has none.
        signature: the types of its arguments, in numba's notation. An array takes one slot for its address and one for each
            length, a number one slot, as int64 or as the bits of a float64.

    Attributes:
        address: the address of the C function that takes the address of the slots.
        arrays: the arrays among its arguments, the last one first: position, type and dimensions of each.
    """

    def __init__(self, address: int, direct: int, signature: str) -> None:
        self.address = address
        self._direct = direct
        self._kinds = kinds(signature)
        #: The formats of the slots: arrays take several integers, numbers one integer or float.
        self._formats = ["q" * (1 + ndim) if ndim or dtype.kind != "f" else "d" for dtype, ndim in self._kinds]
        self._slots = struct.Struct("".join(self._formats))
        self.arrays = [(at, *kind) for at, kind in reversed([*enumerate(self._kinds)]) if kind.ndim]

    @property
    def pointers(self) -> list[int]:
        """The indices of argument slots that may hold addresses: of arrays, and integers, but not lengths or floats."""
        found, at = [], 0
        for formats in self._formats:
            if formats != "d":
                found.append(at)
            at += len(formats)
        return found

    def function(self) -> Callable[..., Any]:
        """Return a Python function that takes the kernel's arguments (arrays and numbers) and runs the machine code."""
        if self._direct:
            return ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * len(self._kinds))(self._direct)
        call = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(self.address)
        return lambda *arguments: call(self.pack(arguments))

    def by_words(self) -> Callable[[int], None]:
        """Return a Python function that takes the address of the packed int64 argument slots and runs the machine code."""
        return ctypes.CFUNCTYPE(None, ctypes.c_int64)(self.address)

    def pack(self, arguments: Sequence[Any]) -> bytes:
        """Return the arguments as int64 slots (see the class); arrays may be read-only, and the caller keeps them alive.

        Raises:
            TypeError: there are too many or too few arguments, or an array is not contiguous or not of the kernel's type.
        """
        if len(arguments) != len(self._kinds):
            raise TypeError(f"The kernel takes {len(self._kinds)} arguments, not {len(arguments)}.")
        return self._slots.pack(*(self._words(arguments) if self.arrays else arguments))

    def rows(self, parts: Sequence[Sequence[Any]]) -> Any:
        """Return an int64 array with a row of slots for the arguments of each part."""
        words: Any = np.frombuffer(b"".join(map(self.pack, parts)), np.int64)
        return words.reshape(len(parts), self._slots.size // 8).copy()

    def _words(self, arguments: Sequence[Any]) -> list[Any]:
        """Return the arguments with each array's address and lengths in its place."""
        words = [*arguments]
        for at, dtype, ndim in self.arrays:
            argument = words[at]
            if argument.__class__ is not np.ndarray and not isinstance(argument, np.ndarray):
                raise TypeError(f"The kernel takes {ndim} dimensions of {dtype}, not {argument!r}.")
            kind, shape = argument.dtype, argument.shape
            if (kind is not dtype and kind != dtype) or len(shape) != ndim:
                raise TypeError(f"The kernel takes {ndim} dimensions of {dtype}, not {kind!r}.")
            if not argument.flags.c_contiguous:
                raise TypeError("The kernel takes contiguous arrays only.")
            words[at : at + 1] = address(argument), *shape
        return words


def kernel(signature: str, fastmath: bool | set[str] = False) -> Callable[[Callable[..., Any]], Kernel]:
    """Return a decorator that makes a function a `Kernel` of this signature."""
    return lambda function: Kernel(function, signature, fastmath)


def family(members: Callable[[], Iterable[tuple[Any, ...]]]) -> Callable[[Callable[..., Kernel]], Callable[..., Kernel]]:
    """Return a decorator for a function that makes a kernel from constants, as there is one kernel for each: results are cached.

    The constants are numbers, strings and bools, by position.

    Args:
        members: returns the constants of all kernels that are built, for the level that is built (`levels.current`).
    """

    def decorate(make: Callable[..., Kernel]) -> Callable[..., Kernel]:
        @functools.cache
        def one(*constants: Any) -> Kernel:
            result = make(*constants)
            result.is_member = True
            result.name = _named(make.__module__, make.__name__, *map(_told, constants))
            return result

        FAMILIES.append((one, members))
        return functools.update_wrapper(one, make, ("__module__", "__name__", "__qualname__", "__doc__"))

    return decorate


def family_of(path: str, signature: Callable[..., str]) -> Callable[..., Kernel]:
    """Declare a family of kernels by the path, "module:name", of a function that `built_with` decorates; return the function that
    gives the kernel of some constants, which imports no source.

    Args:
        path: where the function is that makes, from constants, the Python functions of kernels.
        signature: returns the signature of the kernel of some constants.
    """

    @functools.cache
    def one(*constants: Any) -> Kernel:
        return Kernel(path, signature(*constants), constants=constants)

    FAMILIES.append((one, lambda: _at(path).members()))  # type: ignore[attr-defined]
    return one


def built_with(members: Callable[[], Iterable[tuple[Any, ...]]]) -> Callable[[Any], Any]:
    """Return a decorator for a function that makes Python functions of kernels from constants (`family_of`); `members` returns the
    constants of all that are built.
    """

    def decorate(make: Any) -> Any:
        make.members = members
        return make

    return decorate
