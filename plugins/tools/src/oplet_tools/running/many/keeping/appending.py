"""Append-only files that survive a crash: cut where a write was interrupted, moved into place when complete."""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from collections.abc import Iterable
from contextlib import suppress

from oplet.toolkit import OwnFolder, permissions

__all__ = ["AppendedFile", "move_into_place", "remove_folder"]

#: Seconds between two synchronizations with the disk: what a loss of power may cost. The end of the process costs nothing.
_SYNC_SECONDS = 0.5

#: The byte that is locked on Windows, where nobody can read it meanwhile, this process through another handle neither: beyond what is
#: written, as far as the C library's 32 bits reach.
_LOCKED = 0x7FFF_FFFE


class AppendedFile:
    """A file that one process appends to; it is created unless it exists, and locked. A symbolic link is refused.

    Appended data survive a crash of the process at once, and a loss of power after half a second.

    Raises:
        BlockingIOError: another process has locked the file.
        OSError: the file cannot be opened, is no regular file, or another user may have written it (`EPERM`).
    """

    def __init__(self, folder: OwnFolder, name: str) -> None:
        self._path = os.path.join(folder.path, name)
        with folder.update(name) as file:
            self._handle = os.dup(file.fileno())
        self._synced = time.monotonic()
        try:
            _lock(self._handle, self._path)
            os.lseek(self._handle, 0, os.SEEK_END)
        except BaseException:
            os.close(self._handle)
            raise

    def cut(self, size: int) -> None:
        """Shorten the file to its first `size` bytes."""
        os.ftruncate(self._handle, size)
        os.lseek(self._handle, 0, os.SEEK_END)

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

    def ensure_in_place(self) -> None:
        """Check that the file's path still leads to this open file.

        Raises:
            OSError: the file was replaced or removed.
        """
        if not os.path.samestat(os.fstat(self._handle), os.lstat(self._path)):
            raise FileExistsError(errno.EEXIST, "another file has taken its place", self._path)

    def close(self) -> None:
        """Synchronize, and release the lock, so that other processes can open the file."""
        if self._handle >= 0:
            try:
                self.sync()
            finally:
                os.close(self._handle)
                self._handle = -1


def move_into_place(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Replace the file `target` by the complete file `source`; a symbolic link is replaced, not followed.

    Permissions are the target's, else those of any new file.

    Raises:
        OSError: `source` cannot be moved; the error's `filename` is `target`.
    """
    try:
        mode = permissions(os.fspath(target))
        mode = _usual_permissions(os.path.dirname(source)) if mode is None else mode
        if mode != permissions(os.fspath(source)):  # some file systems have one mode for all files, and refuse to set it
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
    """Remove files of these names from a folder, then the folder itself if it is empty.

    Raises:
        OSError: a file cannot be removed.
    """
    for name in names:
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(path, name))
    with suppress(OSError):
        os.rmdir(path)


def _usual_permissions(folder: str) -> int:
    """Return the permissions that a new file gets in a folder: only making one tells the umask without changing it."""
    path = os.path.join(folder, f".oplet-{os.urandom(8).hex()}.tmp")
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        return stat.S_IMODE(os.fstat(handle).st_mode) & 0o666
    finally:
        os.close(handle)
        os.unlink(path)


def _lock(handle: int, path: str) -> None:
    """Lock the file against writers in other processes; the lock ends with the process."""
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(handle, _LOCKED, os.SEEK_SET)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            raise BlockingIOError(errno.EAGAIN, "another process is writing it", path) from error
        if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS):  # some network file systems have no locks
            raise
