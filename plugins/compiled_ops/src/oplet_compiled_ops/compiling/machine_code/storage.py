"""Disk cache of machine code: one file per kernel, named by a hash of all that it depends on, in "kernels" of oplet's cache
folder.

Files are replaced as a whole and carry a checksum, so that processes may share the folder. As their code is executed, files that
another user could have written are not used (`oplet.CacheFolder`).
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import IO

from oplet import CacheFolder

__all__ = ["FOLDER", "alone", "fetch", "package_folder", "store"]

FOLDER = CacheFolder("kernels")
_MAGIC = b"oplet machine code 1\n"
_DIGEST = 16
_SUFFIX = ".code"
#: The largest file that is read: a hundred times the largest kernel.
_LARGEST = 8 << 20
#: The file whose bytes are locked, the most seconds that a lock is waited for, and those between two looks.
_LOCKS, _PATIENCE, _PAUSE = "being-made", 100.0, 0.05


def package_folder() -> str:
    """Return the folder of this package's sources."""
    return os.path.abspath(sys.modules[__name__.partition(".")[0]].__path__[0])


def fetch(name: str) -> bytes | None:
    """Return the content of a cache entry; None if it is missing or damaged."""
    with suppress(OSError), FOLDER.open(name + _SUFFIX) as file:
        data = file.read(_LARGEST + 1)
        start = len(_MAGIC) + _DIGEST
        content = data[start:]
        if len(data) <= _LARGEST and data[: len(_MAGIC)] == _MAGIC and data[len(_MAGIC) : start] == _sum(content):
            return content
    return None


def store(name: str, content: bytes, most: int) -> bool:
    """Write a cache entry, and delete all but the `most` newest entries of the same kernel; return whether it was written.

    Args:
        name: the entry's name: "kernel-hash", where the part before "-" is the same for all entries of a kernel.
        content: the machine code.
        most: how many entries of the same kernel, with other hashes, are kept.
    """
    try:
        with FOLDER.replace(name + _SUFFIX) as file:
            file.write(_MAGIC + _sum(content) + content)
        FOLDER.keep_newest(name.partition("-")[0] + "-", _SUFFIX, most)
    except OSError:  # the disk is full, or the folder is not the user's
        return False
    return True


@contextmanager
def alone(name: str) -> Iterator[None]:
    """Hold an inter-process lock on a cache entry within a `with`, so that only one process compiles it; wait a hundred seconds
    at most.

    After these, or where files cannot be locked, go on without the lock: an entry may then be compiled twice.
    """
    byte = _byte_of(name)
    with ExitStack() as stack:
        with suppress(OSError):  # opened for writing, as a lock needs it; nothing is written
            file = stack.enter_context(FOLDER.update(_LOCKS))
            end = time.monotonic() + _PATIENCE
            while not _locked(file, byte) and time.monotonic() < end:
                time.sleep(_PAUSE)
        yield


def _byte_of(name: str) -> int:
    """Return which byte of the lock file is locked for a cache entry; entries that share a byte only wait for each other."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=3).digest(), "little")


def _locked(file: IO[bytes], byte: int) -> bool:
    """Lock one byte of a file until the file is closed; return False if another process holds it.

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


def _sum(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST).digest()
