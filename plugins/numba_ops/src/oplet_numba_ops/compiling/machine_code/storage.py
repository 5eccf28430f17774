"""Machine code on disk: one file a kernel, named by a hash of all that it depends on.

The folder is that which NUMBA_CACHE_DIR names, else the package's own folder of compiled Python, else the user's cache folder: the first
that can be written. Files are replaced as a whole and carry a checksum, so that processes may share the folder. Who can write there
decides what runs, as with Python's own compiled files.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import IO

from oplet import write_atomically

__all__ = ["alone", "fetch", "folder", "package_folder", "store"]

_VARIABLE = "NUMBA_CACHE_DIR"
_MAGIC = b"oplet machine code 1\n"
_DIGEST = 16
_SUFFIX = ".code"
#: The largest file that is read: a hundred times the largest kernel.
_LARGEST = 8 << 20
#: The file whose bytes are locked, the most seconds that a lock is waited for, and those between two looks.
_LOCKS, _PATIENCE, _PAUSE = "being-made", 100.0, 0.05


def package_folder() -> str:
    """The folder of this package."""
    return os.path.abspath(sys.modules[__name__.partition(".")[0]].__path__[0])


def _places() -> Iterator[str]:
    named = os.environ.get(_VARIABLE)
    if named:
        yield os.path.join(named, "oplet_numba_ops")
        return
    yield os.path.join(package_folder(), "__pycache__")
    home = os.path.expanduser("~")
    if sys.platform == "win32":
        user = os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")
    elif sys.platform == "darwin":
        user = os.path.join(home, "Library", "Caches")
    else:
        user = os.environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    if os.path.isabs(user):  # a relative one would be in the current folder, which may be a stranger's
        yield os.path.join(user, "oplet", "kernels")


@functools.lru_cache(maxsize=4)
def _folder(_named: str) -> str | None:
    for place in _places():
        with suppress(OSError):
            os.makedirs(place, exist_ok=True)
            if os.access(place, os.W_OK):
                return place
    return None


def folder() -> str | None:
    """The folder of machine code; None where none can be written."""
    return _folder(os.environ.get(_VARIABLE, ""))


def fetch(name: str) -> bytes | None:
    """The content that is stored under a name; None if there is none, or its file is damaged."""
    for place in _places():  # also in folders that can only be read
        with suppress(OSError):
            with open(os.path.join(place, name + _SUFFIX), "rb") as file:
                data = file.read(_LARGEST + 1)
            start = len(_MAGIC) + _DIGEST
            content = data[start:]
            if len(data) <= _LARGEST and data[: len(_MAGIC)] == _MAGIC and data[len(_MAGIC) : start] == _sum(content):
                return content
    return None


def store(name: str, content: bytes, most: int) -> bool:
    """Store content under a name, and remove all but the `most` newest of the files that begin like it; returns whether it is stored.

    Args:
        name: a name, whose part before "-" is that of the kernel.
        content: the bytes.
        most: the most files of the same kernel.
    """
    place = folder()
    if place is None:
        return False
    try:
        write_atomically(os.path.join(place, name + _SUFFIX), _MAGIC + _sum(content) + content)
        _keep_newest(place, name.partition("-")[0] + "-", most)
    except OSError:  # the disk is full, or the folder gone
        return False
    return True


@contextmanager
def alone(name: str) -> Iterator[None]:
    """Be the only process that makes what is stored under a name; another one is waited for, a hundred seconds at most.

    Where no file can be locked nobody waits, and the same may be made twice.
    """
    place = folder()
    byte = _byte_of(name)
    with ExitStack() as stack:
        if place is not None:
            with suppress(OSError):  # opened for writing, as a lock needs it; nothing is written
                file = stack.enter_context(open(os.path.join(place, _LOCKS), "ab", buffering=0))
                end = time.monotonic() + _PATIENCE
                while not _locked(file, byte) and time.monotonic() < end:
                    time.sleep(_PAUSE)
        yield


def _byte_of(name: str) -> int:
    """The byte of the file that stands for a name; two names that share one wait for each other, which is harmless."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=3).digest(), "little")


def _locked(file: IO[bytes], byte: int) -> bool:
    """Lock a byte of a file, which need not be there, until the file is closed; False if another process has locked it.

    Raises:
        OSError: files cannot be locked here.
    """
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(byte)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _keep_newest(place: str, start: str, most: int) -> None:
    """Remove all but the newest files of a kernel; other processes may do the same at the same time."""
    kept = []
    with os.scandir(place) as entries:
        for entry in entries:
            if entry.name.startswith(start) and entry.name.endswith(_SUFFIX):
                with suppress(OSError):
                    kept.append((entry.stat().st_mtime_ns, entry.path))
    for _, path in sorted(kept)[:-most]:
        with suppress(OSError):
            os.unlink(path)


def _sum(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST).digest()
