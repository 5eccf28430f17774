"""Append-only files that survive a crash: cut where a write was interrupted, moved into place when complete."""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from collections.abc import Iterable
from contextlib import suppress

from oplet.toolkit import permissions

__all__ = ["AppendedFile", "make_folder", "move_into_place", "remove_folder"]

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
#: Seconds between two synchronizations with the disk: what a loss of power may cost. The end of the process costs nothing.
_SYNC_SECONDS = 0.5


class AppendedFile:
    """A file that one process appends to; it is created unless it exists, and locked. A symbolic link is refused.

    Appended data survive the end of the process at once, however it ends, and a loss of power after half a second.

    Args:
        path: the file.

    Raises:
        BlockingIOError: another process has it open for appending.
        OSError: it cannot be opened, or is no regular file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        self._handle = os.open(self._path, _FLAGS, 0o666)
        self._synced = time.monotonic()
        try:
            if not stat.S_ISREG(os.fstat(self._handle).st_mode):
                raise OSError(errno.EINVAL, "it is no regular file", self._path)
            _lock(self._handle, self._path)
        except BaseException:
            os.close(self._handle)
            raise

    def cut(self, size: int) -> None:
        """Shorten the file to its first `size` bytes."""
        os.ftruncate(self._handle, size)

    def append(self, data: bytes) -> None:
        """Write bytes at the end of the file.

        Raises:
            OSError: the disk is full, or fails.
        """
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._handle, view) :]
            except OSError as error:
                raise type(error)(error.errno, error.strerror, self._path) from error
        if time.monotonic() - self._synced > _SYNC_SECONDS:
            self.sync()

    def sync(self) -> None:
        """Wait until everything written is on the disk (fsync)."""
        os.fsync(self._handle)
        self._synced = time.monotonic()

    def close(self) -> None:
        """Synchronize, and release the lock, so that other processes can open the file."""
        if self._handle >= 0:
            try:
                self.sync()
            finally:
                os.close(self._handle)
                self._handle = -1


def make_folder(path: str | os.PathLike[str]) -> None:
    """Make a folder unless it exists; a symbolic link is refused.

    Raises:
        OSError: it cannot be made, or something else is there.
    """
    with suppress(FileExistsError):
        os.mkdir(path)
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), os.fspath(path))


def move_into_place(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Replace the file `target` by the complete file `source`, keeping the target's permissions; a symbolic link is replaced, not
    followed.

    Raises:
        OSError: it cannot be moved; `filename` is `target`.
    """
    try:
        mode = permissions(os.fspath(target))
        if mode is not None:
            os.chmod(source, mode)
        os.replace(source, target)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, os.fspath(target)) from error
    if sys.platform != "win32":  # so that the new name outlives a loss of power
        with suppress(OSError):
            handle = os.open(os.path.dirname(os.fspath(target)) or os.curdir, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def remove_folder(path: str | os.PathLike[str], names: Iterable[str]) -> None:
    """Remove files of these names from a folder, then the folder itself unless it holds anything else.

    Raises:
        OSError: a file cannot be removed.
    """
    for name in names:
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(path, name))
    with suppress(OSError):
        os.rmdir(path)


def _lock(handle: int, path: str) -> None:
    """Lock the file against writers in other processes; the lock ends with the process."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            raise BlockingIOError(errno.EAGAIN, "another process is writing it", path) from error
        if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS):  # some network file systems have no locks
            raise
