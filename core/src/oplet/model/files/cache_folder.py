"""Cache folder: what takes long to compute is kept there between runs, such as choices of engines and plans.

What is read back is trusted, and plans decide what is run; so the folder is one of the user's own: a file
counts only if nobody else can have written it, and lies in a folder to which nobody else may add one.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

__all__ = ["FOLDER_VARIABLE", "CacheFolder", "OwnFolder", "cache_folder"]


#: A link is not followed, and a pipe not waited for.
_SAFELY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class OwnFolder:
    """A folder whose files only the current user can write, so that their contents are trusted.

    Args:
        path: the folder's path; it need not exist.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fsdecode(path)

    @property
    def path(self) -> str:
        """The folder's path."""
        return self._path

    def make(self) -> None:
        """Create the folder, accessible to the user alone, unless it exists.

        Raises:
            OSError: the folder cannot be created; or the path is a link, no folder, or a folder that another user can write to (`EPERM`).
        """
        with suppress(FileExistsError):
            os.mkdir(self.path, 0o700)  # a umask takes rights away only
        self._own()

    def open(self, name: str) -> BinaryIO:
        """Open a file of the folder for reading.

        Raises:
            OSError: there is no such file, or it is a link, no regular file, or may have been written by another user (`EPERM`).
        """
        return open(self._opened(name, os.O_RDONLY), "rb")

    def update(self, name: str) -> BinaryIO:
        """Open a file of the folder for reading and writing; it is created, empty, if it does not exist.

        Raises:
            OSError: the file is a link, no regular file, cannot be written, or may have been written by another user (`EPERM`).
        """
        self.make()
        return open(self._opened(name, os.O_RDWR | os.O_CREAT), "r+b")

    @contextmanager
    def replace(self, name: str) -> Iterator[BinaryIO]:
        """Context manager with a file that replaces the one of this name as a whole when the block ends without an exception.

        Raises:
            OSError: the file cannot be written, or another user can write to the folder.
        """
        from oplet.model.files.atomic_write import atomic_write  # late, as most processes only read

        self.make()
        with atomic_write(os.path.join(self._own(), name), mode=0o600) as file:
            yield file

    def _own(self) -> str:
        path = self.path
        status = os.lstat(path)
        if not stat.S_ISDIR(status.st_mode) or not _is_own(status):
            raise PermissionError(errno.EPERM, "it is no folder into which the user alone may write", path)
        return path

    def _opened(self, name: str, flags: int) -> int:
        path = os.path.join(self._own(), name)
        number = os.open(path, flags | _SAFELY, 0o600)
        status = os.fstat(number)
        if stat.S_ISREG(status.st_mode) and _is_own(status):
            return number
        os.close(number)
        raise PermissionError(errno.EPERM, "it is no file that the user alone may write", path)


def _is_own(status: os.stat_result) -> bool:
    """Return whether only the user can write the file or into the folder; the administrator can do so anyway."""
    return not hasattr(os, "geteuid") or (status.st_uid in (os.geteuid(), 0) and not status.st_mode & 0o022)


#: The environment variable that names oplet's cache folder.
FOLDER_VARIABLE = "OPLET_CACHE_DIR"


def cache_folder() -> str:
    """Return the path of oplet's cache folder, "" where the user has none.

    Relative paths are ignored, as the XDG specification asks: they would lead into the current folder, which may be a stranger's.
    """
    given = os.environ.get(FOLDER_VARIABLE)
    if given:
        return given
    home = os.path.expanduser("~")
    if sys.platform == "win32":
        places = [os.environ.get("LOCALAPPDATA", ""), home]
    elif sys.platform == "darwin":
        places = [os.path.join(home, "Library", "Caches")]
    else:
        places = [os.environ.get("XDG_CACHE_HOME", ""), os.path.join(home, ".cache")]
    return next((os.path.join(place, "oplet") for place in places if os.path.isabs(place)), "")


class CacheFolder(OwnFolder):
    """A subfolder of oplet's cache folder, whose files only the user can write.

    Args:
        name: the folder's name, such as "plans".
    """

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def path(self) -> str:
        """The folder's path, by the present environment variables; "" where the user has no cache folder."""
        folder = cache_folder()
        return folder and os.path.join(folder, self._name)

    def make(self) -> None:
        path = self.path
        if not path:
            raise FileNotFoundError(errno.ENOENT, f"the user has no cache folder; name one with {FOLDER_VARIABLE}")
        if path.count(os.sep) > 100:  # each is a call of `makedirs` within another
            raise OSError(errno.ENAMETOOLONG, "it lies in more than 100 folders", path)
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        super().make()

    def keep_newest(self, start: str, end: str, most: int, most_bytes: int = sys.maxsize) -> None:
        """Remove the oldest files while there are too many or too large ones; other processes may do the same meanwhile.

        Args:
            start: the prefix of the files' names.
            end: the suffix of the files' names.
            most: the most files to keep.
            most_bytes: the most bytes that they may have together.
        """
        found = []
        with suppress(OSError), os.scandir(self.path) as entries:
            for entry in entries:
                if entry.name.startswith(start) and entry.name.endswith(end):
                    with suppress(OSError):
                        status = entry.stat(follow_symlinks=False)
                        found.append((status.st_mtime_ns, status.st_size, entry.path))
        total = 0
        for number, (_, size, path) in enumerate(sorted(found, reverse=True)):
            total += size
            if number >= most or total > most_bytes:
                with suppress(OSError):
                    os.unlink(path)
