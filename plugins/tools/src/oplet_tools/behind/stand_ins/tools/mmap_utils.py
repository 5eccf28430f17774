"""Stand-in for `ai_edge_litert.tools.mmap_utils`: files as memory, and advice to the system on how they are read."""

from __future__ import annotations

import ctypes
import logging
import mmap
import os
from typing import Any

__all__ = [
    "BufferType",
    "Path",
    "advise_dont_need",
    "advise_sequential",
    "get_file_contents",
    "get_mapped_buffer",
    "get_mapped_buffer_or_none",
    "set_file_contents",
]

Path = str | os.PathLike[str]
BufferType = bytes | bytearray | memoryview | mmap.mmap


def get_mapped_buffer(path: Path, size: int) -> mmap.mmap:
    """Map a file of `size` bytes into memory, shared and writable; the file is created if missing.

    Raises:
        OSError: the file cannot be opened or mapped.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0))
    try:
        os.truncate(path, size)
        return mmap.mmap(descriptor, 0, access=mmap.ACCESS_WRITE)
    except ValueError as error:  # an empty file cannot be mapped
        raise OSError(str(error)) from error
    finally:
        os.close(descriptor)


def get_mapped_buffer_or_none(path: Path, size: int) -> mmap.mmap | None:
    """Map a file into memory as `get_mapped_buffer` does; return None if that fails."""
    try:
        return get_mapped_buffer(path, size)
    except OSError as error:
        logging.getLogger(__name__).info("'%s' cannot be mapped with %d bytes: %s", path, size, error)
        return None


def get_file_contents(path: Path, *, offset: int = 0, size: int = 0) -> memoryview:
    """Return `size` bytes of a file from `offset` on (0 for all), in writable memory; writes do not change the file.

    Raises:
        OSError: the file cannot be read.
    """
    before = offset % mmap.ALLOCATIONGRANULARITY
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        try:
            mapped = mmap.mmap(descriptor, size + before if size else 0, access=mmap.ACCESS_COPY, offset=offset - before)
        finally:
            os.close(descriptor)
        return memoryview(mapped)[before:]
    except (OSError, ValueError):  # a special file, an empty one
        with open(path, "rb") as file:
            file.seek(offset)
            return memoryview(bytearray(file.read(size) if size else file.read()))


def set_file_contents(path: Path, data: Any, *, offset: int = 0) -> None:
    """Write `data` to a file at `offset`, and truncate the file after it.

    Raises:
        OSError: the file cannot be written.
    """
    with open(os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)), "r+b") as file:
        file.seek(offset)
        file.write(data)
        file.truncate()


def advise_sequential(buffer: Any, offset: int = 0, length: int = 0) -> None:
    """Advise the system (madvise) that a mapped buffer, or `length` bytes of it from `offset`, will be read sequentially."""
    _advise(buffer, offset, length, "MADV_SEQUENTIAL", whole_pages=False)


def advise_dont_need(buffer: Any, offset: int = 0, length: int = 0) -> None:
    """Advise the system (madvise) that a mapped buffer, or `length` bytes of it from `offset`, is no longer needed."""
    _advise(buffer, offset, length, "MADV_DONTNEED", whole_pages=True)


def _advise(buffer: Any, offset: int, length: int, advice: str, *, whole_pages: bool) -> None:
    """Give advice on the pages of part of a buffer: those that it touches, or only those that it has whole; other buffers need none."""
    mapped, start, size = _mapped(buffer)
    if mapped is None or not hasattr(mmap, advice):
        return
    start += offset
    end = start + (size - offset if length == 0 else length)
    page = mmap.PAGESIZE
    first, last = (-(-start // page), end // page) if whole_pages else (start // page, -(-end // page))
    if last > first:
        try:
            mapped.madvise(getattr(mmap, advice), first * page, (last - first) * page)
        except (OSError, ValueError) as error:
            logging.getLogger(__name__).warning("%s failed: %s", advice, error)


def _mapped(buffer: Any) -> tuple[mmap.mmap | None, int, int]:
    """Return the map that a buffer is part of, None if it is part of none, with the buffer's position in it and its size."""
    try:
        view = memoryview(buffer)
        owner: Any = view
        while isinstance(owner, memoryview):
            owner = owner.obj
        if not isinstance(owner, mmap.mmap):
            return None, 0, 0
        begin, own = (ctypes.addressof(ctypes.c_char.from_buffer(each)) for each in (owner, view))
        return owner, own - begin, view.nbytes
    except (TypeError, ValueError):
        return None, 0, 0
