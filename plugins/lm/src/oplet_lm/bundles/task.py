"""MediaPipe's `.task` files: zip archives whose files are stored without compression, so that they are read in place."""

from __future__ import annotations

import io
import struct
import zipfile

from oplet.errors import ModelError
from oplet_lm.bundles.litertlm import Section

__all__ = ["MAGIC", "read_entries"]

MAGIC = b"PK\x03\x04"
_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_MOST = 256
#: What language models' bundles call their parts.
_KINDS = {"TOKENIZER_MODEL": "SP_Tokenizer", "METADATA": "LlmMetadataProto"}


class _Bytes(io.RawIOBase):
    """A file whose bytes are a memory map, for `zipfile`, which reads the directory alone."""

    def __init__(self, view: memoryview) -> None:
        self._view, self._at = view, 0

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = max(offset + (0, self._at, len(self._view))[whence], 0)
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        end = len(self._view) if size is None or size < 0 else min(self._at + size, len(self._view))
        found = bytes(self._view[self._at : end])
        self._at += len(found)
        return found


def read_entries(view: memoryview, path: str) -> list[Section]:
    """Return the files of a `.task` bundle as sections; models have their file's name, in small letters, as `model_type`.

    Args:
        view: the bundle's bytes.
        path: its path in messages.

    Raises:
        ModelError: the bundle is damaged, or a file in it is compressed or encrypted.
    """
    try:
        with zipfile.ZipFile(_Bytes(view)) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, ValueError, OverflowError, NotImplementedError, struct.error, UnicodeError) as error:
        raise ModelError(f"'{path}' is a damaged zip archive: {error}.") from error
    if len(entries) > _MOST:
        raise ModelError(f"'{path}' has {len(entries)} files; {_MOST} are read at most.")
    sections = []
    before = 0
    for entry in sorted(entries, key=lambda each: each.header_offset):
        name = entry.filename.rpartition("/")[2][:256]
        if not name:  # a folder
            continue
        if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1 or entry.compress_size != entry.file_size:
            raise ModelError(
                f"'{path}' has '{name}' compressed or encrypted; bundles store their files as they are: pack it anew."
            )
        begin = _begin(view, entry.header_offset)
        end = begin + entry.file_size
        if not before <= entry.header_offset < begin <= end <= len(view):
            raise ModelError(f"'{path}' is damaged: its file '{name}' overlaps another one or lies outside.")
        before = end
        kind = _KINDS.get(
            name, "TFLiteModel" if name.upper().startswith("TF_LITE_") or name.endswith(".tflite") else "GenericBinaryData"
        )
        sections.append(Section(kind, begin, end, {"model_type": name.lower()}))
    return sections


def _begin(view: memoryview, header: int) -> int:
    """Return where the content of a file begins, by the header before it; 0 where there is none."""
    if not 0 <= header <= len(view) - _LOCAL.size:
        return 0
    magic, *_, name, extra = _LOCAL.unpack_from(view, header)
    return header + _LOCAL.size + name + extra if magic == MAGIC else 0
