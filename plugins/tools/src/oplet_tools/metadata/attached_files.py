"""Reads files in the zip archive that TFLite's metadata tools append to a model: by name, into memory, within limits.

Nothing is unpacked to a disk, and no name of a member is taken for a path.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from oplet import Model
from oplet.errors import ModelError, text_of
from oplet.texts import shown

if TYPE_CHECKING:
    from zipfile import ZipFile

__all__ = ["MOST_BYTES", "ArchiveView", "AttachedFile", "attached_file", "attached_files"]

#: The largest attached file that is read, in bytes, unpacked.
MOST_BYTES = 8 << 20
#: The largest table of contents that is read, in bytes.
_LARGEST_TABLE = 1 << 20
_STORED, _DEFLATED, _ENCRYPTED = 0, 8, 0x1 | 0x40


class AttachedFile(NamedTuple):
    """A file of the archive that is appended to a model."""

    name: str
    bytes: int  #: Its size, unpacked.


def attached_file(model: Model, name: str) -> bytes | None:
    """Return the content of an attached file; None if no archive is attached or it has no such member.

    Args:
        name: the member's name.

    Raises:
        ModelError: the archive is damaged, or the file is encrypted, too large or compressed in an unusual way.
    """
    with _archive(model, f"The file '{shown(name)}' attached to the model {model.name}") as archive:
        found = [member for member in archive.infolist() if member.filename == name] if archive is not None else []
        if archive is None or not found:
            return None
        if len(found) > 1:
            raise ValueError("two of its files have this name")
        [member] = found
        if member.flag_bits & _ENCRYPTED:
            raise ValueError("it is encrypted")
        if member.compress_type not in (_STORED, _DEFLATED):
            raise ValueError(f"it is compressed by method {member.compress_type}, which TFLite's tools do not use")
        if member.file_size > MOST_BYTES:
            raise ValueError(f"it has {member.file_size} bytes, more than the {MOST_BYTES} that are read of such a file")
        with archive.open(member) as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise ValueError(f"it has more than the {MOST_BYTES} bytes that are read of such a file")
        return content


def attached_files(model: Model) -> list[AttachedFile]:
    """Return the files that are attached to a model, in the archive's order.

    Raises:
        ModelError: the archive is damaged.
    """
    with _archive(model, f"The archive of files attached to the model {model.name}") as archive:
        return [] if archive is None else [AttachedFile(member.filename, member.file_size) for member in archive.infolist()]


@contextmanager
def _archive(model: Model, what: str) -> Iterator[ZipFile | None]:
    """Open the archive that is appended to a model, None if there is none; errors in the block become a ModelError that says of `what` that
    it cannot be read.
    """
    model.check_files()
    data = model.data
    if b"PK\5\6" not in bytes(data[-(1 << 16) - 22 :]):  # the end of an archive's table of contents
        yield None
        return
    try:
        import zipfile  # imported late: few models have metadata

        with zipfile.ZipFile(ArchiveView(data)) as archive:
            yield archive
    except Exception as error:  # zipfile raises many kinds of errors on damaged files
        why = "there is not enough memory" if isinstance(error, MemoryError) else text_of(error).rstrip(".")[:300]
        raise ModelError(f"{what} cannot be read: {why}.") from error


class ArchiveView(io.RawIOBase):
    """A read-only file over bytes in memory, for zipfile; it refuses single reads that are too large for a zip's directory."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        target = offset + (0, self._position, len(self._data))[whence]
        if target < 0:
            raise ValueError("it has a position before its beginning")
        self._position = target
        return target

    def tell(self) -> int:
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        rest = max(len(self._data) - self._position, 0)
        size = rest if size is None or size < 0 else min(size, rest)
        if size > _LARGEST_TABLE:
            raise ValueError(f"its table of contents has more than {_LARGEST_TABLE} bytes")
        content = bytes(self._data[self._position : self._position + size])
        self._position += size
        return content
