"""Files that somebody names: ordinary ones only, and no more of them than is good."""

from __future__ import annotations

import errno
import os
import stat
from typing import BinaryIO

__all__ = ["TEXT_BYTES", "open_file", "read_file"]

#: The largest file of text or JSON that is read whole: parsed, it takes up to 24 times as much.
TEXT_BYTES = 32 << 20


def open_file(path: str | os.PathLike[str]) -> BinaryIO:
    """Open an ordinary file for reading; a pipe or a device, which might block or never end, is refused and not waited for.

    Raises:
        OSError: it cannot be opened, or is no ordinary file; `strerror` says why.
    """
    name = os.fspath(path)
    try:
        file = open(name, "rb", opener=_without_waiting)  # noqa: SIM115  # the caller closes it
    except ValueError as error:  # a NUL in the name, or what the file system's encoding does not have
        raise OSError(errno.EINVAL, f"no file can have this name ({error})", name) from error
    try:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is a pipe or a device and no file; write what it gives into a file first", name)
    except BaseException:
        file.close()
        raise
    return file


def read_file(path: str | os.PathLike[str], most: int = TEXT_BYTES) -> bytes:
    """The content of an ordinary file.

    Args:
        path: the file.
        most: the bytes that it may have.

    Raises:
        OSError: it cannot be read, is no ordinary file, or is larger.
    """
    with open_file(path) as file:
        content = file.read(most + 1) if os.fstat(file.fileno()).st_size <= most else None
    if content is None or len(content) > most:
        raise OSError(errno.EFBIG, f"it is larger than the {most} bytes that are read of such a file", os.fspath(path))
    return content


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
