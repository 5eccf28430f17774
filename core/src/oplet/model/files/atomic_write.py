"""Atomic writing of files: the complete file replaces its target, or nothing changes; links are not followed."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

__all__ = ["atomic_write", "check_target", "is_special", "permissions", "write_atomically"]

_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
_ATTEMPTS = 100
_PREFIX = ".oplet-"


@contextmanager
def atomic_write(path: str | os.PathLike[str], *, executable: bool = False, mode: int | None = None) -> Iterator[BinaryIO]:
    """Context manager with a file that replaces `path` when the block ends without an exception.

    The file is written in the same folder under a random name, and then renamed. Readers and mappings of the old file keep it; a symbolic
    link is replaced and not followed; a failure leaves the old file and removes the new one. Permissions are those of the old file, else
    those of any new file, unless they are given. A device or a pipe, such as /dev/stdout, is written to directly.

    Args:
        path: the file's path.
        executable: whether everyone who may read the file may also execute it.
        mode: the file's permissions, whatever the umask and the old file say.

    Raises:
        OSError: the file cannot be written; its `filename` is `path`.
    """
    target = os.fsdecode(path)
    if is_special(target):
        with open(os.open(target, os.O_WRONLY | getattr(os, "O_BINARY", 0)), "wb") as file:
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # replaced since it was examined
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
            yield file
        return
    mode = permissions(target) if mode is None else mode
    if mode is not None and executable:
        mode |= (mode & 0o444) >> 2
    temporary = ""
    try:
        fresh = 0o777 if executable else 0o666
        temporary, handle = _new_file(os.path.dirname(target), fresh if mode is None else 0o600)
        with open(handle, "w+b") as file:
            yield file
            file.flush()
            if mode is not None and hasattr(os, "fchmod"):
                os.fchmod(handle, mode)
        os.replace(temporary, target)
    except BaseException as error:
        if temporary:
            with suppress(OSError):
                os.unlink(temporary)
        if isinstance(error, OSError) and _is_ours(error.filename) and error.errno is not None:
            raise type(error)(error.errno, error.strerror or "", target) from error
        raise


def check_target(path: str | os.PathLike[str]) -> None:
    """Check, before long work, that a file can probably be written.

    Raises:
        OSError: the folder does not exist or is not writeable, or the target is a folder; `filename` is `path`.
    """
    target = os.fsdecode(path)
    folder = os.path.dirname(target) or os.curdir
    trouble = 0
    if os.path.isdir(target):
        trouble = errno.EISDIR
    elif not os.path.isdir(folder):
        trouble = errno.ENOTDIR if os.path.exists(folder) else errno.ENOENT
    elif not is_special(target) and not os.access(folder, os.W_OK | os.X_OK):
        trouble = errno.EACCES
    if trouble:
        raise OSError(trouble, os.strerror(trouble), target)


def write_atomically(path: str | os.PathLike[str], content: bytes | bytearray | memoryview | str) -> None:
    """Write a whole file with `atomic_write`; text in UTF-8, with unchanged line ends.

    Raises:
        OSError: the file cannot be written.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    with atomic_write(path) as file:
        file.write(data)


def _new_file(folder: str, mode: int) -> tuple[str, int]:
    """Create a file under a random name in the folder; return its path and descriptor.

    Unlike `tempfile.mkstemp`, which always uses 0600, the system applies the umask to `mode`. A program can read the umask only by
    changing it for all threads.
    """
    attempts = 0
    while True:
        name = os.path.join(folder, f"{_PREFIX}{os.urandom(8).hex()}.tmp")
        try:
            return name, os.open(name, _NEW, mode)
        except FileExistsError:
            attempts += 1
            if attempts >= _ATTEMPTS:
                raise


def _is_ours(name: object) -> bool:
    """Return whether the file name in an OSError is that of our temporary file, or missing; the user knows neither."""
    return name is None or (isinstance(name, str) and os.path.basename(name).startswith(_PREFIX))


def is_special(path: str) -> bool:
    """Return whether a path is a device or a pipe, which is written to and not replaced."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)


def permissions(path: str) -> int | None:
    """Return the permission bits of the regular file at a path; None if there is no file, or it is a symbolic link."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return None
    return stat.S_IMODE(status.st_mode) & 0o777 if stat.S_ISREG(status.st_mode) else None
