"""Files that appear whole or not at all, and never where somebody planted a link."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

__all__ = ["atomic_write", "check_folder", "check_target", "write_atomically"]

_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
_ATTEMPTS = 100
_PREFIX = ".oplet-"


@contextmanager
def atomic_write(path: str | os.PathLike[str], *, executable: bool = False) -> Iterator[BinaryIO]:
    """A file to write, which takes its place when everything was written.

    It grows in the same folder, under a name that nobody can guess, and then replaces what is there: whoever has opened or mapped
    the old file keeps it, a link is replaced and not followed, and what goes wrong leaves the old file and nothing else. Its
    permissions are those of the file that it replaces, else those that any new file gets. A device or a pipe, such as
    /dev/stdout, is written to.

    Args:
        path: where it will be.
        executable: let those run it who may read it.

    Raises:
        OSError: the file cannot be written; its `filename` is `path`.
    """
    target = os.fspath(path)
    if _is_special(target):
        with open(os.open(target, os.O_WRONLY | getattr(os, "O_BINARY", 0)), "wb") as file:
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # it has been exchanged since
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
            yield file
        return
    mode = _mode(target)
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
    """Say now that a file cannot be written where that can be seen, before long work is done for it.

    Raises:
        OSError: there is no such folder, it cannot be written in, or the target is a folder; `filename` is `path`.
    """
    target = os.fspath(path)
    folder = os.path.dirname(target) or os.curdir
    trouble = 0
    if os.path.isdir(target):
        trouble = errno.EISDIR
    elif not os.path.isdir(folder):
        trouble = errno.ENOTDIR if os.path.exists(folder) else errno.ENOENT
    elif not _is_special(target) and not os.access(folder, os.W_OK | os.X_OK):
        trouble = errno.EACCES
    if trouble:
        raise OSError(trouble, os.strerror(trouble), target)


def check_folder(path: str | os.PathLike[str]) -> None:
    """Say now that a folder cannot be made, with those around it, or written in.

    Raises:
        OSError: something in its path is no folder, or the innermost one that is there cannot be written in; `filename` is `path`.
    """
    there = os.path.abspath(path)
    while not os.path.lexists(there):
        there = os.path.dirname(there)
    trouble = 0 if os.access(there, os.W_OK | os.X_OK) else errno.EACCES
    if not os.path.isdir(there):
        trouble = errno.ENOTDIR
    if trouble:
        raise OSError(trouble, os.strerror(trouble), os.fspath(path))


def write_atomically(path: str | os.PathLike[str], content: bytes | bytearray | memoryview | str) -> None:
    """Write a file by `atomic_write`; text in UTF-8, its line ends as they are.

    Raises:
        OSError: the file cannot be written.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    with atomic_write(path) as file:
        file.write(data)


def _new_file(folder: str, mode: int) -> tuple[str, int]:
    """A file that was not there, and its descriptor: `tempfile.mkstemp`, but with the permissions of any new file.

    `mkstemp` gives 0600, and which permissions the user wants otherwise can only be asked by changing it for all threads.
    """
    for attempt in range(_ATTEMPTS):
        name = os.path.join(folder, f"{_PREFIX}{secrets.token_hex(8)}.tmp")
        try:
            return name, os.open(name, _NEW, mode)
        except FileExistsError:
            if attempt == _ATTEMPTS - 1:
                raise
    raise FileExistsError(folder)


def _is_ours(name: object) -> bool:
    """Whether an error is about the new file, which has a name that the user does not know."""
    return name is None or (isinstance(name, str) and os.path.basename(name).startswith(_PREFIX))


def _is_special(path: str) -> bool:
    """Whether a path leads to what can be written and not replaced: a device, a pipe."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)


def _mode(path: str) -> int | None:
    """The permissions of the file at a path; None if there is none, or a link, which has none of its own."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return None
    return stat.S_IMODE(status.st_mode) & 0o777 if stat.S_ISREG(status.st_mode) else None
