"""Reading of user-named files: regular files only, up to a maximum size."""

from __future__ import annotations

import errno
import os
import stat
from typing import BinaryIO

__all__ = ["TEXT_BYTES", "open_file", "read_file"]

#: The largest file of text or JSON that is read, in bytes; parsed, it takes up to 24 times as much memory.
TEXT_BYTES = 32 << 20


def open_file(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file for reading. Pipes and devices, which might block or never end, are refused without blocking.

    Raises:
        OSError: the file cannot be opened, or is not a regular file; `strerror` gives the reason.
    """
    name = os.fsdecode(path)
    try:
        file = open(name, "rb", opener=_without_waiting)  # noqa: SIM115  # the caller closes it
    except ValueError as error:  # a NUL in the name, or characters that the file system cannot encode
        raise OSError(errno.EINVAL, f"no file can have this name ({error})", name) from error
    try:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is a pipe or a device and no file; write what it gives into a file first", name)
    except BaseException:
        file.close()
        raise
    return file


def read_file(path: str | os.PathLike[str], most: int = TEXT_BYTES) -> bytes:
    """Read the content of a regular file.

    Args:
        path: the file.
        most: its largest size in bytes.

    Raises:
        OSError: the file cannot be read, is not a regular file, or is larger.
    """
    with open_file(path) as file:
        content = file.read(most + 1) if os.fstat(file.fileno()).st_size <= most else None
    if content is None or len(content) > most:
        raise OSError(errno.EFBIG, f"it is larger than the {most} bytes that are read of such a file", os.fsdecode(path))
    return content


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
