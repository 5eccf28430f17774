"""Bundles: files that hold a language model, its tokenizer and metadata. Nothing in them is trusted.

LiteRT-LM's `.litertlm` files have sections; MediaPipe's `.task` files are zip archives without compression.
"""

from __future__ import annotations

import os
import struct
import zipfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from oplet import Model
from oplet.errors import ModelError
from oplet.schema.decode import decode
from oplet.schema.table import Field, Table, string, table, tables, uint64, union
from oplet.texts import plain
from oplet.toolkit import map_file
from oplet_lm.metadata import Metadata, read_metadata
from oplet_tools.metadata.attached_files import ArchiveView

__all__ = ["AUXILIARY", "DECODER", "EMBEDDER", "PER_LAYER_EMBEDDER", "Bundle", "Section"]

DECODER, AUXILIARY = "tf_lite_prefill_decode", "tf_lite_aux"
EMBEDDER, PER_LAYER_EMBEDDER = "tf_lite_embedder", "tf_lite_per_layer_embedder"

#: The name under which models refer to the weights that lie in a section of their own.
_WEIGHTS = "tflite_weights"
#: The largest metadata and the largest tokenizer, unpacked, in bytes; those of today's models have some kilobytes and 35 MB.
_LARGEST_METADATA, _LARGEST_TOKENIZER = 4 << 20, 128 << 20
#: The first bytes of either format.
_LITERTLM, _TASK = b"LITERTLM", b"PK\x03\x04"
_MAJOR, _HEADER, _LOCAL = 1, 32, struct.Struct("<4s22xHH")
#: The largest header, the most sections and the most items of one, and the multiple at which FlatBuffers in the file can be read in place.
_LARGEST_HEADER, _MOST, _ALIGNMENT = 1 << 20, 256, 16
#: Types of sections by number, and what `.task` files call some of them.
_KINDS = (
    "none", "GenericBinaryData", "Deprecated", "TFLiteModel", "SP_Tokenizer", "LlmMetadataProto", "HF_Tokenizer_Zlib", "TFLiteWeights",
    "EmbeddingMetadataProto", "ExecutorMetadataProto", "TtsMetadataProto", "AsrMetadataProto",
)  # fmt: skip
_FILES = {"TOKENIZER_MODEL": "SP_Tokenizer", "METADATA": "LlmMetadataProto"}


# The header of a .litertlm file is a FlatBuffer. Source: litert-lm-builder's litertlm_header_schema.fbs.
class _Text(Table):
    value: str | None = string(0)


class _Item(Table):
    key: str | None = string(0)
    value: Any = union(2, {9: _Text})


class _Object(Table):
    items: list[_Item] | None = tables(0, _Item)
    begin: int = uint64(1)
    end: int = uint64(2)
    kind: int = Field(3, "scalar", number="uint8", default=0)  # type: ignore[assignment]


class _Objects(Table):
    objects: list[_Object] | None = tables(0, _Object)


class _Root(Table):
    sections: _Objects | None = table(1, _Objects)


class Section(NamedTuple):
    """A section of a bundle: a model, its weights, a tokenizer or metadata.

    Attributes:
        kind: the name of the section's type, such as "TFLiteModel".
        begin, end: the offsets in the file at which it begins and ends.
        items: the section's properties that are texts, by name.
    """

    kind: str
    begin: int
    end: int
    items: Mapping[str, str]

    @property
    def model_type(self) -> str:
        """The role of a model or its weights, "tf_lite_prefill_decode" if not given; "" for other sections."""
        return self.items.get("model_type", DECODER if self.kind.startswith("TFLite") else "").lower()


class Bundle:
    """A memory-mapped `.litertlm` or `.task` file: a language model's .tflite models, tokenizer and metadata in one file.

    Args:
        path: the file.

    Attributes:
        path: the file's path.
        kind: the file's format and version, in words.
        sections: its sections.

    Raises:
        ModelError: the file cannot be opened, is no bundle, or is damaged; of the methods: the part that they return is damaged.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._file = map_file(path)
        self.kind, self.sections = _read_sections(self._file.view, self.path)

    def content(self, section: Section) -> memoryview:
        """Return the bytes of a section; the file must not have been truncated."""
        self._file.check()
        return self._file.view[section.begin : section.end]

    def find(self, kind: str, model_type: str = "") -> Section | None:
        """Return the last section of a kind ("TFLiteModel") and, for models and weights, of this `model_type`; None without one."""
        return next((each for each in reversed(self.sections) if each.kind == kind and model_type in ("", each.model_type)), None)

    @property
    def models(self) -> list[str]:
        """The `model_type` of each model in the bundle, such as "tf_lite_prefill_decode"."""
        return [section.model_type for section in self.sections if section.kind == "TFLiteModel"]

    def model(self, model_type: str) -> Model | None:
        """Open the model of this `model_type`, with constants as views of the file; None if there is none."""
        section, weights = self.find("TFLiteModel", model_type), self.find("TFLiteWeights", model_type)
        if section is None:
            return None
        data = self.content(section) if section.begin % _ALIGNMENT == 0 else bytes(self.content(section))  # as in zip archives
        try:
            model = Model.from_bytes(data, external={} if weights is None else {_WEIGHTS: self.content(weights)})
        except ModelError as error:
            raise ModelError(f"'{self.path}', {model_type}: {error}") from error
        model.name = f"{self.path}, {model_type}"
        return model

    def metadata(self) -> Metadata:
        """Read the metadata of the language model, and on running it."""
        return read_metadata(*(self._small(kind, _LARGEST_METADATA) for kind in ("LlmMetadataProto", "ExecutorMetadataProto")))

    def tokenizer(self) -> tuple[str, bytes]:
        """Return the tokenizer's kind, "huggingface" or "sentencepiece", and its file, unpacked."""
        if found := self._small("SP_Tokenizer", _LARGEST_TOKENIZER):
            return "sentencepiece", found
        if not (packed := self._small("HF_Tokenizer_Zlib", _LARGEST_TOKENIZER)):
            raise ModelError(f"'{self.path}' has no tokenizer.")
        size, unpacker, unpacked = int.from_bytes(packed[:8], "little"), zlib.decompressobj(), b""
        with suppress(zlib.error):
            unpacked = unpacker.decompress(packed[8:], min(size, _LARGEST_TOKENIZER) + 1)
        if len(unpacked) != size or not unpacker.eof:
            most = f"{size} bytes that it says; {_LARGEST_TOKENIZER} are read at most"
            raise ModelError(f"'{self.path}' is damaged: its tokenizer does not unpack to the {most}.")
        return "huggingface", unpacked

    def _small(self, kind: str, most: int) -> bytes:
        """Return the content of the section of a kind, whose bytes are limited; b"" if there is none."""
        data = b"" if (section := self.find(kind)) is None else self.content(section)
        if len(data) > most:
            raise ModelError(f"'{self.path}' has {len(data)} bytes of {kind}; {most} are read at most.")
        return bytes(data)


def _read_sections(view: memoryview, path: str) -> tuple[str, list[Section]]:
    """Return the format and version, in words, and the sections of a bundle, the file `path` with the bytes `view`."""
    if view[:8] == _LITERTLM:
        kind, first, sections = _of_litertlm(view, path)
    elif view[:4] == _TASK:
        kind, first, sections = "MediaPipe bundle (.task)", 0, _of_task(view, path)
    else:
        raise ModelError(f"'{path}' is no bundle of a language model: it is neither a .litertlm nor a .task file.")
    for section in sorted(sections, key=lambda each: each.begin):
        name = f"{section.kind} {section.model_type}".rstrip()
        if not first <= section.begin <= section.end <= len(view):
            raise ModelError(
                f"'{path}' is damaged: its section {name}, from byte {section.begin} to {section.end}, overlaps what lies before byte {first}, "
                f"or lies outside the file's {len(view)} bytes."
            )
        first = section.end
    return kind, sections


def _of_litertlm(view: memoryview, path: str) -> tuple[str, int, list[Section]]:
    """Return what kind of file it is, where its header ends, and its sections."""
    if len(view) < _HEADER:
        raise ModelError(f"'{path}' is cut off: a .litertlm file has a header of {_HEADER} bytes at least.")
    major, minor, patch, _, end = struct.unpack_from("<IIIIQ", view, len(_LITERTLM))
    if major != _MAJOR:
        raise ModelError(f"'{path}' is of version {major}.{minor}.{patch} of .litertlm files; versions {_MAJOR}.x are read.")
    if not _HEADER < end <= min(len(view), _LARGEST_HEADER):
        raise ModelError(f"'{path}' is damaged: its header ends at byte {end} of {len(view)}.")
    root = decode(_Root, memoryview(bytes(view[_HEADER:end])), f"the header of '{path}'")
    objects = (root.sections.objects if root.sections else None) or []
    if (count := max([len(objects), *(len(each.items or ()) for each in objects)])) > _MOST:
        raise ModelError(f"The header of '{path}' lists {count} things in a row; {_MOST} are read at most.")
    sections = []
    for each in objects:
        kind = _KINDS[each.kind] if each.kind < len(_KINDS) else f"of type {each.kind}"
        if each.begin % _ALIGNMENT:
            raise ModelError(f"'{path}' is damaged: a section {kind} begins at byte {each.begin}, no multiple of {_ALIGNMENT}.")
        items = {plain(item.key or ""): plain(item.value.value or "") for item in each.items or () if item.value}
        sections.append(Section(kind, each.begin, each.end, items))
    return f"LiteRT-LM file (.litertlm) of version {major}.{minor}.{patch}", end, sections


def _of_task(view: memoryview, path: str) -> list[Section]:
    """Return the files of a `.task` bundle as sections; models have their file's name, in small letters, as `model_type`."""
    try:
        with zipfile.ZipFile(ArchiveView(view)) as archive:
            entries = [each for each in archive.infolist() if each.filename.rpartition("/")[2]]
    except (zipfile.BadZipFile, ValueError, OverflowError, NotImplementedError, struct.error, OSError) as error:
        raise ModelError(f"'{path}' is a damaged zip archive: {error}.") from error
    if len(entries) > _MOST:
        raise ModelError(f"'{path}' has {len(entries)} files; {_MOST} are read at most.")
    sections = []
    for entry in entries:
        name, at = entry.filename.rpartition("/")[2][:_MOST], entry.header_offset
        if entry.compress_type or entry.flag_bits & 1 or entry.compress_size != entry.file_size:
            raise ModelError(f"'{path}' has '{name}' compressed or encrypted; bundles store files as they are: pack it anew.")
        magic, *lengths = _LOCAL.unpack_from(view, at) if 0 <= at <= len(view) - _LOCAL.size else (b"",)
        if magic != _TASK:
            raise ModelError(f"'{path}' is damaged: at byte {at}, before its file '{name}', is no header of a file.")
        begin = at + _LOCAL.size + sum(lengths)
        is_model = name.upper().startswith("TF_LITE_") or name.endswith(".tflite")
        kind = _FILES.get(name, "TFLiteModel" if is_model else "GenericBinaryData")
        sections.append(Section(kind, begin, begin + entry.file_size, {"model_type": name.lower()}))
    return sections
