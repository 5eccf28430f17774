"""LiteRT-LM's `.litertlm` files: a header with a table of sections, and the sections, at multiples of 16 KiB."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from oplet.errors import ModelError
from oplet_lm.bundles.wire import Table

__all__ = ["KINDS", "MAGIC", "Section", "read_sections"]

MAGIC = b"LITERTLM"
_MAJOR = 1
_HEADER = 32
#: The largest header, and the multiple at which FlatBuffers in the file can be read in place.
_LARGEST_HEADER, _ALIGNMENT = 1 << 20, 16

#: Types of sections by number.
KINDS = (
    "none", "GenericBinaryData", "Deprecated", "TFLiteModel", "SP_Tokenizer", "LlmMetadataProto", "HF_Tokenizer_Zlib", "TFLiteWeights",
    "EmbeddingMetadataProto", "ExecutorMetadataProto", "TtsMetadataProto", "AsrMetadataProto",
)  # fmt: skip
#: How values of items are stored, by the type of the union: letters of `struct`; texts are strings.
_VALUES = {1: "B", 2: "b", 3: "H", 4: "h", 5: "I", 6: "i", 7: "f", 8: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT = 9


@dataclass(frozen=True)
class Section:
    """A section of a bundle: a model, its weights, a tokenizer or metadata.

    Attributes:
        kind: the name of the section's type, such as "TFLiteModel".
        begin, end: the offsets in the file at which it begins and ends.
        items: the section's properties, by name.
    """

    kind: str
    begin: int
    end: int
    items: dict[str, object] = field(default_factory=dict)

    @property
    def model_type(self) -> str:
        """The role of a model or its weights, such as "tf_lite_prefill_decode"; "" if not given."""
        return str(self.items.get("model_type", "")).lower()


def read_sections(view: memoryview, path: str) -> tuple[str, list[Section]]:
    """Return the version of a `.litertlm` file and its sections.

    Args:
        view: the file's bytes.
        path: its path in messages.

    Raises:
        ModelError: the file is damaged, or of an unknown version.
    """
    if len(view) < _HEADER:
        raise ModelError(f"'{path}' is cut off: a .litertlm file has a header of {_HEADER} bytes at least.")
    major, minor, patch, _, end = struct.unpack_from("<IIIIQ", view, len(MAGIC))
    if major != _MAJOR:
        raise ModelError(f"'{path}' is of version {major}.{minor}.{patch} of .litertlm files; versions {_MAJOR}.x are read.")
    if not _HEADER < end <= min(len(view), _LARGEST_HEADER):
        raise ModelError(f"'{path}' is damaged: its header ends at byte {end} of {len(view)}.")
    root = Table(bytes(view[_HEADER:end]))
    listed = root.table(1)
    objects = [] if listed is None else listed.tables(0)
    sections = [_section(each) for each in objects]
    before = end
    for section in sorted(sections, key=lambda each: each.begin):
        if not before <= section.begin <= section.end <= len(view):
            raise ModelError(
                f"'{path}' is damaged: a section {section.kind} from byte {section.begin} to {section.end} overlaps what is before "
                f"{before}, or lies outside the file's {len(view)} bytes."
            )
        if section.begin % _ALIGNMENT:
            raise ModelError(
                f"'{path}' is damaged: a section {section.kind} begins at byte {section.begin}, no multiple of {_ALIGNMENT}."
            )
        before = section.end
    return f"{major}.{minor}.{patch}", sections


def _section(table: Table) -> Section:
    number = table.number(3, "B")
    kind = KINDS[number] if number < len(KINDS) else f"of type {number}"
    items = {item.text(0): _value(item) for item in table.tables(0)}
    return Section(kind, table.number(1, "Q"), table.number(2, "Q"), items)


def _value(item: Table) -> object:
    kind, value = item.number(1, "B"), item.table(2)
    if value is None:
        return None
    if kind == _TEXT:
        return value.text(0)
    return value.number(0, _VALUES[kind]) if kind in _VALUES else None
