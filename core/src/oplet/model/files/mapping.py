"""Files in memory: mapped once, shared by everyone who has the same file open, or read as a whole."""

from __future__ import annotations

import mmap
import os
import stat
import threading
import weakref

from oplet.errors import LimitError, ModelError
from oplet.schema.naming import shown

__all__ = ["MappedFile", "ensure_not_truncated", "map_file", "open_regular"]

#: A pipe or a device that was put in a file's place after it was looked at must not block, nor become the terminal.
_FLAGS = sum(getattr(os, name, 0) for name in ("O_RDONLY", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"))

_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class MappedFile:
    """A file's bytes, read-only: mapped, so that the pages belong to the operating system's cache, or read into memory.

    Attributes:
        path: the file.
        view: its bytes.
    """

    __slots__ = ("__weakref__", "_pages", "path", "view")

    def __init__(self, path: str, content: mmap.mmap | bytes) -> None:
        self.path = path
        self.view = memoryview(content)
        self._pages = content if isinstance(content, mmap.mmap) else None

    def check(self) -> None:
        """See that the file was not cut short: reading behind its end would end the process.

        A file that was deleted, or replaced by renaming another, is no trouble: the mapping keeps the old one. One that was
        read into memory cannot change.

        Raises:
            ModelError: it is shorter than it was when it was mapped.
        """
        if self._pages is not None:
            ensure_not_truncated(self._pages, self.path)

    def release_pages(self) -> None:
        """Let go of the pages that were read so far; they come back when they are read again.

        Reading a model's tables touches a few bytes near each constant, and a kernel with large pages then counts all of the
        constants as this process's memory.
        """
        if self._pages is not None and hasattr(mmap, "MADV_DONTNEED"):
            self._pages.madvise(mmap.MADV_DONTNEED)


def ensure_not_truncated(pages: mmap.mmap, path: str) -> None:
    """See that the file behind a mapping is not shorter than the mapping.

    Raises:
        ModelError: it is.
    """
    try:
        size = pages.size()
    except (OSError, ValueError):  # no file lies behind it
        return
    if size < len(pages):
        raise ModelError(
            f"'{shown(path)}' changed while it was in use: it had {len(pages)} bytes and has {size}. Open it again; "
            "write a new file and rename it over the old one, open it with use_mmap=False, or hand over the bytes as model_content."
        )


def open_regular(path: str | bytes, *, follow: bool = True) -> int:
    """Open a regular file for reading, without ever waiting for another process; the caller closes the descriptor.

    Args:
        follow: whether the last part of the path may be a symbolic link.

    Raises:
        OSError: it cannot be opened, or is something else than a regular file.
        ValueError: no file can have this name.
    """
    _ensure_regular(os.stat(path, follow_symlinks=follow))
    descriptor = os.open(path, _FLAGS if follow else _FLAGS | getattr(os, "O_NOFOLLOW", 0))
    try:
        _ensure_regular(os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _ensure_regular(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = next((words for test, words in _KINDS if test(status.st_mode)), "no file")
        words = "Is a directory: " if kind == "a directory" else ""
        raise OSError(0, f"{words}it is {kind}, and only regular files are read")


_open: weakref.WeakValueDictionary[tuple[int, int, int, int], MappedFile] = weakref.WeakValueDictionary()
_lock = threading.Lock()


def map_file(path: str | os.PathLike[str], *, use_mmap: bool = True, follow: bool = True) -> MappedFile:
    """Map a file, or return the mapping that someone already has of the same, unchanged file.

    Args:
        use_mmap: False to read the file into memory of this process instead, where nobody can change it.
        follow: whether the last part of the path may be a symbolic link.

    Raises:
        ModelError: the file cannot be opened, is empty or no regular file, or is being changed.
        LimitError: there is no memory for it.
    """
    file_path = os.fspath(path)
    try:
        descriptor = open_regular(file_path, follow=follow)
        try:
            return _content(descriptor, file_path, use_mmap)
        finally:
            os.close(descriptor)
    except ModelError:
        raise
    except MemoryError as error:
        raise LimitError(f"There is not enough memory to read '{shown(file_path)}'; open it with use_mmap=True.") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ModelError(
            f"Could not open '{shown(file_path)}'. The model allocation is null/empty: {reason}; check the path."
        ) from error


def _content(descriptor: int, path: str, use_mmap: bool) -> MappedFile:
    status = os.fstat(descriptor)
    if not status.st_size:
        raise ModelError(f"Could not open '{shown(path)}'. The model allocation is null/empty: the file is empty (0 bytes).")
    if not use_mmap:
        return MappedFile(path, _read(descriptor, path, status.st_size))
    key = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
    with _lock:
        mapped = _open.get(key)
        if mapped is None:
            mapped = _open[key] = MappedFile(path, mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))
    return mapped


def _read(descriptor: int, path: str, size: int) -> bytes:
    with os.fdopen(os.dup(descriptor), "rb", buffering=0) as file:
        content = file.read(size) or b""
        while len(content) < size and (more := file.read(size - len(content))):  # the system gives 2 GB at a time
            content += more
    if len(content) != size:
        raise ModelError(
            f"'{shown(path)}' changed while it was read: it had {size} bytes, of which {len(content)} came. Open it again."
        )
    return content
