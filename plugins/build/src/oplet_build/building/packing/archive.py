"""Writer of .pyz programs: a zip archive that Python runs, whose models are stored uncompressed and aligned for memory mapping."""

from __future__ import annotations

import io
import zipapp
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

from oplet.toolkit import atomic_write

__all__ = ["MODEL_ALIGNMENT", "write_archive"]

#: Alignment of a model's bytes in the archive, which keeps the alignment of its constants in the mapped file.
MODEL_ALIGNMENT = 64
_TIME = (1980, 1, 1, 0, 0, 0)
_LOCAL_HEADER_SIZE = 30
#: Identifier of a zip extra field that only pads: two bytes of identifier ("op") and two of size precede the padding.
_PADDING_NAME = b"op"


def write_archive(
    target: Path, models: Mapping[str, bytes], files: Callable[[Mapping[str, int]], Mapping[str, bytes]], interpreter: str
) -> None:
    """Write a program's archive; the same content gives the same bytes.

    Args:
        target: the file.
        models: the models by path in the archive; they come first, uncompressed and aligned.
        files: makes all other files, by path, from the offsets of the models' zip headers (counted after the interpreter line).
        interpreter: the interpreter in the first line (#!); "" for none.
    """
    buffer = io.BytesIO()
    prefix = len(f"#!{interpreter}\n".encode()) if interpreter else 0
    headers: dict[str, int] = {}
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, content in sorted(models.items()):
            headers[path] = buffer.tell()
            entry = _entry(path)
            begin = prefix + buffer.tell() + _LOCAL_HEADER_SIZE + len(path.encode())
            padding = -(begin + 4) % MODEL_ALIGNMENT
            entry.extra = _PADDING_NAME + padding.to_bytes(2, "little") + bytes(padding)
            archive.writestr(entry, content, zipfile.ZIP_STORED)
        for path, content in sorted(files(headers).items()):
            archive.writestr(_entry(path), content, zipfile.ZIP_DEFLATED, 9)
    buffer.seek(0)
    target.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(target, executable=bool(interpreter)) as file:
        zipapp.create_archive(buffer, file, interpreter or None)


def _entry(path: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(path, _TIME)
    entry.create_system = 3  # Unix, on every system, so that the bytes are the same
    entry.external_attr = 0o644 << 16
    return entry
