"""Machine code in memory: images are copied to pages of their own, which are then made executable and never writeable again."""

from __future__ import annotations

import ctypes
import functools
import mmap
import struct
from typing import Any

from oplet_numba_ops.compiling.machine_code.image import Image, ImageError

__all__ = ["CLibrary", "address_of", "loaded"]

_READ, _EXECUTE = 1, 4


@functools.cache
def CLibrary() -> Any:
    """The functions of the C library and of Python that are in this process."""
    return ctypes.CDLL(None)


@functools.cache
def address_of(name: str) -> int:
    """The address of a function of the C library, 0 if there is none."""
    try:
        return ctypes.cast(getattr(CLibrary(), name), ctypes.c_void_p).value or 0
    except (AttributeError, OSError, TypeError):  # TypeError: CDLL(None) is for POSIX
        return 0


def loaded(image: Image) -> dict[str, int]:
    """The addresses of an image's functions, after copying it to executable memory, which is never freed.

    Raises:
        ImageError: the system lets no memory become executable, or lacks a function that the image calls.
    """
    size = -(-len(image.code) // mmap.PAGESIZE) * mmap.PAGESIZE
    try:
        memory = mmap.mmap(-1, size)
        protect = CLibrary().mprotect
    except (OSError, AttributeError, TypeError) as error:
        raise ImageError(f"there is no memory for it: {error}") from error
    memory[: len(image.code)] = image.code
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for at in image.own:
        _add(memory, at, base)
    for name, places in image.library.items():
        address = address_of(name)
        if not address:
            raise ImageError(f"the C library has no function {name}")
        for at in places:
            _add(memory, at, address)
    if protect(ctypes.c_void_p(base), ctypes.c_size_t(size), _READ | _EXECUTE) != 0:
        raise ImageError("the system lets no memory become executable")
    # Helpers may be in machine code while Python ends and frees what it has.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(memory))
    return {name: base + at for name, at in image.entries.items()}


def _add(memory: mmap.mmap, at: int, value: int) -> None:
    [word] = struct.unpack_from("<Q", memory, at)
    struct.pack_into("<Q", memory, at, (word + value) & 0xFFFFFFFFFFFFFFFF)
