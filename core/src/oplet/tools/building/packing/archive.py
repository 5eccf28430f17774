"""A program in one file: a zip archive that Python runs, with models that can be mapped where they lie."""

from __future__ import annotations

import io
import zipapp
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

from oplet.model.files.atomic_write import atomic_write

__all__ = ["MODEL_ALIGNMENT", "write_archive"]

#: Where a model's bytes begin, so that its constants are aligned in the mapped file as the model has them.
MODEL_ALIGNMENT = 64
_TIME = (1980, 1, 1, 0, 0, 0)
_LOCAL_HEADER_SIZE = 30
#: An extra field that means nothing: two bytes of name ("op") and two of size before the padding.
_PADDING_NAME = b"op"


def write_archive(
    target: Path, models: Mapping[str, bytes], files: Callable[[Mapping[str, int]], Mapping[str, bytes]], interpreter: str
) -> None:
    """Write a program's archive; the same content gives the same bytes.

    Args:
        target: the file.
        models: the models by path in the archive; they come first, uncompressed and aligned.
        files: all other files by path, made from where the models' headers begin (behind the interpreter line).
        interpreter: what the first line names; "" for none.
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
    entry.create_system = 3  # whatever system builds it
    entry.external_attr = 0o644 << 16
    return entry
