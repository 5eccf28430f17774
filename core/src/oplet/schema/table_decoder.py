"""Decoder of single FlatBuffers tables; it checks every offset before it follows it.

Files are not trusted. Each table, vtable, vector and string must lie inside the buffer, with the alignment of its kind. Three budgets,
of the file's size each, bound the bytes of all tables, of all vectors of numbers and of all strings; parts that share bytes are charged
once per reference. Decoding, and one pass over all that was decoded, therefore take time and memory linear in the file's size.

All tables with the same fields share a vtable, so the layout that it describes is computed once and cached.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import IntEnum
from operator import add
from typing import Any, TypeVar

import numpy as np

from oplet.errors import ModelError
from oplet.records import Row
from oplet.schema.table import Field, Table

__all__ = ["SOFFSET", "STRING_HEAD", "UOFFSET", "VTABLE_HEAD", "Layout", "Numbers", "TableDecoder"]

T = TypeVar("T", bound=Table)
Numbers = np.ndarray[Any, Any]

UOFFSET = struct.Struct("<I")
SOFFSET = struct.Struct("<i")
VTABLE_HEAD = struct.Struct("<HH")
_ENUM_MEMBERS: dict[type[IntEnum], dict[int, IntEnum]] = {}

#: Number of unknown fields and union members that are described; a file can hold millions.
_UNKNOWN_KEPT = 8
#: Budget of the constants together, as a multiple of the file's size: buffers may share bytes, and nothing copies them.
_SHARED = 16
#: Bytes that each budget has beyond the file's size: writers share small parts of small files.
_SPARE = 1 << 16
#: Bytes of a string in the file besides its characters: its length, and the offset that refers to it.
STRING_HEAD = 8
#: First UTF-8 lead byte of the characters beyond the Basic Multilingual Plane. Python stores a string with such a character in four
#: bytes a character.
_ASTRAL = 0xF0
#: Offsets of a vector up to which Python adds them faster than numpy does.
_FEW = 16
#: Bytes above which a decoded string is cached by its position, for all references to it.
_LONG = 32
#: Size in bytes up to which tables are decoded in batches.
_SLIM = 128


class Layout(Row):
    """Layout of the tables of one class that share a vtable."""

    size: int
    groups: list[
        tuple[struct.Struct, list[str]]
    ]  # unpackers of scalars and offsets, with the fields' names; one unless fields overlap
    enums: list[tuple[str, dict[int, IntEnum]]]
    # Vectors of numbers: name, position of the offset in the table, dtype, whether several may share bytes.
    vectors: list[tuple[str, int, np.dtype[Any], bool]]
    references: list[tuple[Field, int]]  # all other offsets: field, position in the table
    unions: list[tuple[Field, int, int]]  # field, positions of the value's offset and of the type; 0 where absent
    unknown: list[int]  # ids of fields that the class does not declare
    wide_scalars: list[int]  # positions of 8-byte scalars; tables are aligned to 4 bytes only
    batch: list[struct.Struct]  # unpacker of consecutive tables; empty where tables are not decoded in batches


#: Cache of layouts; most files use the same vtables.
_LAYOUTS: dict[tuple[type[Table], bytes], Layout] = {}
#: Number of cached layouts, and the largest vtable in bytes that is cached.
_LAYOUTS_KEPT, _COMMON = 1024, 64


class TableDecoder:
    """Decoder of the tables of one file, one table at a time."""

    def __init__(self, buffer: memoryview, where: str, unknown: list[str]) -> None:
        self.buffer = buffer
        self.array = np.frombuffer(buffer, np.uint8)
        self.array.flags.writeable = False
        self.size = len(buffer)
        whole = self.array[: self.size & -4]
        self.words = {"i": whole.view("<i4"), "u": whole.view("<u4"), "f": whole.view("<f4")}
        self.where = where
        self.unknown = unknown
        self.layouts: dict[tuple[int, type[Table]], Layout] = {}
        # Bytes as they lie in the file, so that a file without shared parts stays within its budgets.
        self.tables_left = self.numbers_left = self.text_left = self.size + _SPARE
        self.shared_left = self.size * _SHARED
        self.strings: dict[int, str] = {}

    def fail(self, what: str, position: int) -> ModelError:
        return ModelError(
            f"The model is not a valid Flatbuffer buffer: {what} at byte {position} of {self.where} ({self.size} bytes); "
            "the file is truncated or damaged, fetch or convert it again."
        )

    def note_unknown(self, what: str, position: int) -> None:
        if len(self.unknown) < _UNKNOWN_KEPT:
            self.unknown.append(f"{what} at byte {position}")

    def root(self, cls: type[T]) -> T:
        if self.size < 8:
            raise self.fail("no room for a root offset", 0)
        return self.table(cls, self.follow(0, "root offset"))

    def follow(self, position: int, what: str) -> int:
        target = position + int(UOFFSET.unpack_from(self.buffer, position)[0])
        if target + 4 > self.size:
            raise self.fail(f"{what} leads outside the file, to {target},", position)
        return target

    def layout(self, cls: type[Table], vtable: int, position: int) -> Layout:
        """Decode the vtable of tables of `cls` and cache its layout; `position` is the first such table, for messages."""
        if position % 4 or vtable < 0 or vtable % 2 or vtable + 4 > self.size:
            raise self.fail(f"{cls.__name__} has no vtable inside the file", position)
        vtable_size, size = VTABLE_HEAD.unpack_from(self.buffer, vtable)
        if vtable_size < 4 or vtable_size % 2 or vtable + vtable_size > self.size:
            raise self.fail(f"{cls.__name__} does not fit into the file", position)
        key = cls, bytes(self.buffer[vtable : vtable + vtable_size])
        layout = _LAYOUTS.get(key)
        if layout is None:
            layout = self.new_layout(cls, vtable + 4, vtable + vtable_size, size, position)
            if vtable_size <= _COMMON and len(_LAYOUTS) < _LAYOUTS_KEPT:
                _LAYOUTS[key] = layout
        self.layouts[vtable, cls] = layout
        return layout

    def new_layout(self, cls: type[Table], start: int, end: int, size: int, position: int) -> Layout:
        declared = cls.fields[-1].id + 1 if cls.fields else 0
        slots = struct.unpack_from(f"<{min(declared, (end - start) // 2)}H", self.buffer, start)
        left = {id for id, offset in enumerate(slots) if offset}  # ids that the vtable sets and no field has matched yet
        later = self.array[start + 2 * declared : end].view("<u2")
        if later.size and later.any():  # one id is enough to describe
            left.add(declared + int((later != 0).argmax()))
        layout = Layout(size, [], [], [], [], [], [], [], [])
        places: list[tuple[int, str, int, str]] = []
        for field in cls.fields:
            type_offset = slots[field.id - 1] if field.kind == "union" and field.id - 1 in left else 0
            offset = slots[field.id] if field.id in left else 0
            left -= {field.id, field.id - 1} if field.kind == "union" else {field.id}
            if offset and offset + (field.dtype.itemsize if field.kind == "scalar" else 4) > size:
                raise self.fail(f"field {field.name} lies outside its {cls.__name__}", position + offset)
            if type_offset and type_offset + 1 > size:
                raise self.fail(f"the type of union {cls.__name__}.{field.name} lies outside its table", position + type_offset)
            if field.kind == "union":
                if offset or type_offset:
                    layout.unions.append((field, offset, type_offset))
            elif not offset:
                continue
            elif field.kind == "scalar":
                width = field.dtype.itemsize
                if offset % min(width, 4):
                    raise self.fail(f"field {field.name} of {cls.__name__} is not aligned", position + offset)
                if width == 8:
                    layout.wide_scalars.append(offset)
                if field.enum is not None:
                    layout.enums.append((field.name, _members(field.enum)))
                places.append((offset, field.format, width, field.name))
            else:
                if field.kind == "vector":
                    layout.vectors.append((field.name, offset, field.dtype, field.shared))
                else:
                    layout.references.append((field, offset))
                places.append((offset, "I", 4, field.name))
        layout.groups.extend(_groups(places))
        layout.unknown.extend(sorted(left))
        offsets = [offset for _, offset, *_ in layout.vectors] + [offset for _, offset in layout.references]
        if 4 <= size <= _SLIM and len(layout.groups) <= 1 and not left and not any(offset % 4 for offset in offsets):
            packed = layout.groups[0][0].format if layout.groups else "<"
            spare = -(-size // 4) * 4 - struct.calcsize(packed)
            layout.batch.append(struct.Struct(f"{packed}{spare}x"))
        return layout

    def table(self, cls: type[T], position: int) -> T:
        buffer, whole = self.buffer, self.size
        vtable = position - SOFFSET.unpack_from(buffer, position)[0]
        layout = self.layouts.get((vtable, cls)) or self.layout(cls, vtable, position)
        size, groups, enums, vectors, references, unions, unknown, wide, _ = layout
        if position % 4 or position + size > whole:
            raise self.fail(f"{cls.__name__} does not fit into the file", position)
        self.tables_left -= size if size > 4 else 4
        if self.tables_left < 0:
            raise self.fail("more tables than its bytes can hold", position)
        for offset in wide:
            if (position + offset) % 8:
                raise self.fail(f"a field of {cls.__name__} is not aligned", position + offset)
        values: dict[str, Any]
        if len(groups) == 1:
            [(packed, names)] = groups
            values = dict(zip(names, packed.unpack_from(buffer, position)))
        else:
            values = {}
            for packed, names in groups:
                values.update(zip(names, packed.unpack_from(buffer, position)))
        for name, members in enums:
            number = values[name]
            values[name] = members.get(number, number)
        for name, offset, dtype, shared in vectors:
            target = position + offset + values[name]
            start = target + 4
            if start > whole or target % 4:
                raise self.misplaced(cls, name, position + offset, target)
            itemsize = dtype.itemsize
            nbytes = UOFFSET.unpack_from(buffer, target)[0] * itemsize
            if start + nbytes > whole or not self.spend_numbers(nbytes, shared):
                raise self.too_long(cls, name, target, start + nbytes)
            if itemsize == 4:
                values[name] = self.words[dtype.kind][start >> 2 : (start + nbytes) >> 2]
            else:
                values[name] = self.array[start : start + nbytes].view(dtype)
        for field, offset in references:
            at = position + offset
            values[field.name] = self.reference(cls, field, at, at + values[field.name])
        for field, offset, type_offset in unions:
            value = self.union(cls, field, position, offset, type_offset)
            if value is not None:
                values[field.name] = value
        for id in unknown:
            self.note_unknown(f"field {id} of {cls.__name__}", position)
        result = cls.__new__(cls)
        result.__dict__ = values
        return result

    def spend_numbers(self, nbytes: int, shared: bool) -> bool:
        """Subtract the bytes of vectors of numbers from their budget, or from that of `shared` ones; False if it is exceeded."""
        if shared:
            self.shared_left -= nbytes
            return self.shared_left >= 0
        self.numbers_left -= nbytes
        return self.numbers_left >= 0

    def union(self, cls: type[Table], field: Field, position: int, offset: int, type_offset: int) -> Table | None:
        member = self.buffer[position + type_offset] if type_offset else 0
        known = (field.members or {}).get(member) if member else None
        if offset and known is not None:
            return self.table(known, self.follow(position + offset, f"{cls.__name__}.{field.name}"))
        # A member of a later schema. The op that needs it reports the missing options. A known one without a value is as good as none:
        # all readers take the defaults of its fields then, and nothing is lost where it is not written.
        if member and known is None:
            self.note_unknown(
                f"member {member} of the union {cls.__name__}.{field.name}{'' if offset else ', which has no value'}", position
            )
        elif offset:
            self.note_unknown(f"a value of no type in the union {cls.__name__}.{field.name}", position)
        return None

    def reference(self, cls: type[Table], field: Field, at: int, target: int) -> Any:
        """Decode the string, table or vector that the offset at position `at` points to (`target`)."""
        kind = field.kind
        if target + 4 > self.size or (target % 4 and kind != "table"):
            raise self.misplaced(cls, field.name, at, target)
        if kind == "table":
            return self.table(field.table or Table, target)
        length = UOFFSET.unpack_from(self.buffer, target)[0]
        start = target + 4
        if kind == "string":
            return self.text(cls, field, target)
        if kind == "strings":
            return [self.text(cls, field, at) for at in self.targets(cls, field, start, length)]
        return self.tables_at(field.table or Table, self.targets(cls, field, start, length))

    def text(self, cls: type[Table], field: Field, target: int) -> str:
        """Decode the string at `target`; at least four bytes lie there."""
        length, start = UOFFSET.unpack_from(self.buffer, target)[0], target + 4
        if start + length + 1 > self.size or self.buffer[start + length]:
            raise self.fail(f"{cls.__name__}.{field.name} of {length} bytes does not fit into the file", target)
        return self.string(start, length)

    def misplaced(self, cls: type[Table], name: str, at: int, target: int) -> ModelError:
        if target + 4 > self.size:
            return self.fail(f"{cls.__name__}.{name} leads outside the file, to {target},", at)
        return self.fail(f"{cls.__name__}.{name} is not aligned", target)

    def too_long(self, cls: type[Table], name: str, target: int, end: int) -> ModelError:
        if end > self.size:
            length = UOFFSET.unpack_from(self.buffer, target)[0]
            return self.fail(f"{cls.__name__}.{name} of {length} values does not fit into the file", target)
        return self.fail(f"{cls.__name__}.{name} shares its bytes with too many others", target)

    def targets(self, cls: type[Table], field: Field, start: int, length: int) -> list[int]:
        """Return the positions that a vector of `length` offsets at `start` leads to; at least four bytes lie at each."""
        end = start + 4 * length
        if end > self.size:
            raise self.fail(f"{cls.__name__}.{field.name} of {length} {field.kind} does not fit into the file", start - 4)
        self.tables_left -= 4 * length
        if self.tables_left < 0:
            raise self.fail("more tables than its bytes can hold", start)
        if length < _FEW:
            targets = list(map(add, range(start, end, 4), struct.unpack_from(f"<{length}I", self.buffer, start)))
        else:
            targets = (self.words["u"][start >> 2 : end >> 2] + np.arange(start, end, 4)).tolist()
        if length and max(targets) > self.size - 4:
            number = next(number for number, target in enumerate(targets) if target > self.size - 4)
            what = f"{cls.__name__}.{field.name} leads outside the file, to {targets[number]},"
            raise self.fail(what, start + 4 * number)
        return targets

    def tables_at(self, cls: type[Table], positions: Sequence[int]) -> Sequence[Table]:
        """Decode the tables of one class at the given positions in the file; at least four bytes lie at each."""
        table = self.table
        return [table(cls, position) for position in positions]

    def string(self, start: int, length: int) -> str:
        text = self.strings.get(start) if length > _LONG else None
        if text is None:
            self.spend_text(length + STRING_HEAD, start)
            raw = bytes(self.buffer[start : start + length])
            text = raw.decode("utf-8", "surrogateescape") if raw.isascii() else self.non_ascii(raw, start)
            if length > _LONG:
                self.strings[start] = text
        return text

    def non_ascii(self, raw: bytes, start: int) -> str:
        """Decode a string that is not ASCII, and count the memory that Python's wider characters take against the budget."""
        units = np.frombuffer(raw, np.uint8)
        followers = int(np.count_nonzero((units & 0xC0) == 0x80))
        leaders = sum(int(np.count_nonzero(units >= lead)) for lead in (0xC0, 0xE0, _ASTRAL))
        width = 4 if int(units.max()) >= _ASTRAL else 2
        characters = len(raw) - followers if followers == leaders else len(raw)  # each byte that is not UTF-8 becomes a character
        spent = max(0, characters * width - len(raw))
        self.spend_text(spent, start)
        text = raw.decode("utf-8", "surrogateescape")
        self.spend_text(max(0, len(text) * width - len(raw) - spent), start)
        return text

    def spend_text(self, nbytes: int, start: int) -> None:
        """Subtract the bytes of the string at `start` from the budget of all strings.

        Raises:
            ModelError: the strings take more bytes than the file has.
        """
        self.text_left -= nbytes
        if self.text_left < 0:
            raise self.fail("a string shares its bytes with too many others", start - 4)


def _groups(places: list[tuple[int, str, int, str]]) -> list[tuple[struct.Struct, list[str]]]:
    """Group the fields of a table (offset, format, width, name) into as few `struct` unpackers as possible; in a damaged file
    fields may overlap.
    """
    formats: list[str] = []
    names: list[list[str]] = []
    ends: list[int] = []
    for offset, format, width, name in sorted(places):
        if not ends or offset < ends[-1]:
            formats.append("<")
            names.append([])
            ends.append(0)
        formats[-1] += f"{offset - ends[-1]}x{format}"
        names[-1].append(name)
        ends[-1] = offset + width
    return [(struct.Struct(format), group) for format, group in zip(formats, names)]


def _members(enum: type[IntEnum]) -> dict[int, IntEnum]:
    members = _ENUM_MEMBERS.get(enum)
    if members is None:
        members = _ENUM_MEMBERS[enum] = {int(m): m for m in enum}
    return members
