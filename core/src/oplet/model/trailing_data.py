"""Trailing data of a model file, such as the zip archive with label files that TFLite's metadata tools append.

The archive's directory has positions in the whole file, which must be corrected when the size of the model before it changes. Other bytes
that no table refers to (leftovers of a writer, a log that a tool appended) do not depend on their position.
"""

from __future__ import annotations

import struct

from oplet.errors import ModelError

__all__ = ["is_archive", "relocated", "trailing_bytes"]

_END = struct.Struct("<4s4H2IH")  # end of central directory: ..., entries, size, position, comment length
_ENTRY = struct.Struct("<4s24x3H8xI")  # central directory entry: name, extra and comment lengths, position
_UINT32 = struct.Struct("<I")


def trailing_bytes(data: memoryview, end: int) -> tuple[bytes, int]:
    """Return the bytes after the used part of a file, which ends at `end`, without leading padding; and their position."""
    rest = bytes(data[end:])
    found = rest.lstrip(b"\0")
    return found, end + len(rest) - len(found)


def is_archive(data: bytes) -> bool:
    """Return whether the bytes begin as a zip archive, damaged or not."""
    return data.startswith(b"PK")


def relocated(archive: bytes, start: int, target: int, name: str) -> bytes:
    """Return a zip archive from position `start` of a file, with its positions corrected for position `target`.

    Args:
        name: the model's name in messages.

    Raises:
        ModelError: the archive's positions cannot be corrected: it is damaged, in several parts, or past 4 GB.
    """
    refused = ModelError(
        f"{name} has {len(archive)} bytes behind its tables and constants, at byte {start}, that begin as a zip archive and are none "
        'that can be moved (damaged, in several parts, or past 4 GB); write the model without them: unreferenced="drop", or '
        "`oplet rewrite --drop-unreferenced`."
    )
    at = archive.rfind(b"PK\5\6")
    if at < 0 or at + _END.size > len(archive):
        raise refused
    _, disk, first_disk, _, entries, size, position, _ = _END.unpack_from(archive, at)
    directory = at - size
    if disk or first_disk or directory < 0 or entries == 0xFFFF:
        raise refused
    if position == directory:  # positions count from the archive's own start
        return archive
    delta = target - start
    if position != directory + start or position + delta >= 2**32:
        raise refused
    result = bytearray(archive)
    for _ in range(entries):
        if directory + _ENTRY.size > at:
            raise refused
        signature, name_length, extra, comment, local = _ENTRY.unpack_from(archive, directory)
        if signature != b"PK\1\2":
            raise refused
        _UINT32.pack_into(result, directory + 42, local + delta)
        directory += 46 + name_length + extra + comment
    _UINT32.pack_into(result, at + 16, position + delta)
    return bytes(result)
