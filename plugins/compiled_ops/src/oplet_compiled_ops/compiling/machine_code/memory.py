"""Executable memory: images are copied into their own pages, which become executable and are never writeable again."""

from __future__ import annotations

import ctypes
import functools
import mmap
import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from oplet_compiled_ops.compiling.machine_code.image import Image

__all__ = ["CLibrary", "ImageError", "Loaded", "add_word", "address_of", "executable", "images", "loaded"]

_READ, _EXECUTE = 1, 4


class ImageError(Exception):
    """Raised for an object file that cannot become an image, or an image that cannot be loaded, with the reason."""


class Loaded(NamedTuple):
    """A loaded image: its address, size and relocations.

    Attributes:
        base: the address of its first byte.
        size: its size in bytes.
        own: the offsets of 64-bit words to which `base` was added.
        library: for each C library function by name, the offsets of 64-bit words to which its address was added.
    """

    base: int
    size: int
    own: Sequence[int]
    library: Mapping[str, Sequence[int]]


#: All images that were loaded, which stay until the process ends.
images: list[Loaded] = []


@functools.cache
def CLibrary() -> Any:
    """Return the ctypes library in which all C functions of this process are found, those of Python included."""
    return ctypes.CDLL(None)


@functools.cache
def address_of(name: str) -> int:
    """Return the address of a C library function; 0 if the library has none of that name."""
    try:
        return ctypes.cast(getattr(CLibrary(), name), ctypes.c_void_p).value or 0
    except (AttributeError, OSError, TypeError):  # TypeError: CDLL(None) is for POSIX
        return 0


def loaded(image: Image) -> dict[str, int]:
    """Load an image into executable memory, which is never freed; return the addresses of its functions.

    Raises:
        ImageError: the system lets no memory become executable, or lacks a function that the image calls.
    """
    memory, base = _copied(image.code)
    for at in image.own:
        add_word(memory, at, base)
    for name, places in image.library.items():
        address = address_of(name)
        if not address:
            raise ImageError(f"the C library has no function {name}")
        for at in places:
            add_word(memory, at, address)
    _protect(memory, base)
    # Helpers may be in machine code while Python ends and frees what it has.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(memory))
    images.append(Loaded(base, len(image.code), image.own, image.library))
    return {name: base + at for name, at in image.entries.items()}


def executable(code: bytes, own: Any, library: Mapping[str, Any]) -> tuple[mmap.mmap, int]:
    """Copy machine code (several images as one) to executable memory and relocate it; return the memory, which the caller keeps,
    and its address.

    Args:
        code: the machine code.
        own: an array of the offsets in `code` of 64-bit words to which the copy's address is added.
        library: for each C library function by name, an array of the offsets in `code` of 64-bit words to which its address is
            added.

    Raises:
        ImageError: the system lets no memory become executable, or the C library lacks one of the functions.
    """
    import numpy as np

    memory, base = _copied(code)
    added = [(base, own), *((address_of(name), places) for name, places in library.items())]
    for value, places in added:
        if not value:
            raise ImageError("the C library lacks a function")
        for start in range(8):  # words may begin anywhere
            words: Any = np.ndarray(((len(memory) - start) // 8,), np.int64, memory, start)
            words[places[places % 8 == start] // 8] += value
    _protect(memory, base)
    return memory, base


def _copied(code: bytes) -> tuple[mmap.mmap, int]:
    """Copy the code into newly mapped pages, still writeable; return the pages and their address.

    Raises:
        ImageError: the system has no memory for it.
    """
    size = -(-len(code) // mmap.PAGESIZE) * mmap.PAGESIZE
    try:
        memory = mmap.mmap(-1, size)
    except OSError as error:
        raise ImageError(f"there is no memory for it: {error}") from error
    memory[: len(code)] = code
    return memory, ctypes.addressof(ctypes.c_char.from_buffer(memory))


def _protect(memory: mmap.mmap, base: int) -> None:
    """Make the pages `memory`, at the address `base`, executable and no longer writeable.

    Raises:
        ImageError: the system does not allow it.
    """
    try:
        protect = CLibrary().mprotect
    except (AttributeError, OSError, TypeError) as error:
        raise ImageError(f"the system has no way to make memory executable: {error}") from error
    if protect(ctypes.c_void_p(base), ctypes.c_size_t(len(memory)), _READ | _EXECUTE) != 0:
        raise ImageError("the system lets no memory become executable")


def add_word(memory: mmap.mmap | bytearray, at: int, value: int) -> None:
    """Relocate: add `value` to the little-endian 64-bit word at the byte offset `at`, which need not be aligned; the sum wraps
    around.
    """
    [word] = struct.unpack_from("<Q", memory, at)
    struct.pack_into("<Q", memory, at, (word + value) & 0xFFFFFFFFFFFFFFFF)
