"""Files in memory: mapped once, shared by everyone who has the same file open."""

from __future__ import annotations

import mmap
import os
import threading
import weakref

from oplet.errors import ModelError

__all__ = ["MappedFile", "map_file"]


class MappedFile:
    """A read-only mapping of a file; the pages belong to the operating system's cache.

    Attributes:
        path: the file.
        view: its bytes.
    """

    __slots__ = ("__weakref__", "_pages", "path", "view")

    def __init__(self, path: str, pages: mmap.mmap) -> None:
        self.path = path
        self.view = memoryview(pages)
        self._pages = pages

    def check(self) -> None:
        """See that the file was not cut short: reading behind its end would end the process.

        A file that was deleted, or replaced by renaming another, is no trouble: the mapping keeps the old one.

        Raises:
            ModelError: it is shorter than it was when it was mapped.
        """
        if self._pages.size() < self.view.nbytes:
            raise ModelError(
                f"'{self.path}' changed while it was in use: it had {self.view.nbytes} bytes and has {self._pages.size()}. Open it again; "
                "write a new file and rename it over the old one, or hand over the bytes as model_content."
            )

    def release_pages(self) -> None:
        """Let go of the pages that were read so far; they come back when they are read again.

        Reading a model's tables touches a few bytes near each constant, and a kernel with large pages then counts all of the
        constants as this process's memory.
        """
        if hasattr(mmap, "MADV_DONTNEED"):
            self._pages.madvise(mmap.MADV_DONTNEED)


_open: weakref.WeakValueDictionary[tuple[int, int, int, int], MappedFile] = weakref.WeakValueDictionary()
_lock = threading.Lock()


def map_file(path: str | os.PathLike[str]) -> MappedFile:
    """Map a file, or return the mapping that someone already has of the same, unchanged file.

    Raises:
        ModelError: the file cannot be opened or is empty.
    """
    file_path = os.fspath(path)
    try:
        with open(file_path, "rb") as file:
            status = os.fstat(file.fileno())
            key = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
            with _lock:
                mapped = _open.get(key)
                if mapped is None:
                    if not status.st_size:
                        raise ModelError(
                            f"Could not open '{path}'. The model allocation is null/empty: the file is empty (0 bytes)."
                        )
                    mapped = _open[key] = MappedFile(file_path, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            return mapped
    except OSError as error:
        raise ModelError(
            f"Could not open '{path}'. The model allocation is null/empty: {error.strerror or error}; check the path."
        ) from error
