"""Read tables from FlatBuffers bytes, checking every offset before it is followed.

The file comes from a stranger: each table, vtable, vector and string must lie inside the buffer, where its kind may begin. The
number of tables and the bytes of all vectors together are bounded by the file's size, so that reading, and whoever looks once
at everything that was read, takes time linear in it whatever its offsets say.

A vtable is shared by all tables that have the same fields, so what it says is worked out once and then kept.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Any, NamedTuple, TypeVar

import numpy as np

from oplet.errors import ModelError
from oplet.schema.table import Field, Table

__all__ = ["decode", "extent"]

T = TypeVar("T", bound=Table)

_UOFFSET = struct.Struct("<I")
_SOFFSET = struct.Struct("<i")
_VTABLE_HEAD = struct.Struct("<HH")
_ENUM_MEMBERS: dict[type[IntEnum], dict[int, IntEnum]] = {}

#: How many unknown parts of a file are named; a file can hold millions.
_UNKNOWN_KEPT = 8
#: How many times the file's size all vectors may have together: offsets can lead to the same vector again and again.
_SHARED = 16
#: Bytes of a string that is decoded once for all who refer to it.
_LONG = 32


def decode(cls: type[T], buffer: memoryview, where: str = "the model", unknown: list[str] | None = None) -> T:
    """Decode the root table of a FlatBuffer.

    Args:
        cls: the root table's class.
        buffer: the whole file; vectors of numbers become read-only views of it.
        where: what errors call the file.
        unknown: takes descriptions (the first few) of what a later schema put into the file and the tables cannot hold.

    Raises:
        ModelError: an offset, vector, string or union does not lie inside the file.
    """
    return _Decoder(buffer, where, [] if unknown is None else unknown).root(cls)


def extent(cls: type[T], buffer: memoryview) -> tuple[T, int]:
    """The root table of a FlatBuffer and the position behind the last byte that it uses.

    Raises:
        ModelError: as `decode` does.
    """
    decoder = _Measuring(buffer, "the model", [])
    return decoder.root(cls), decoder.end


class _Layout(NamedTuple):
    """What a vtable says about the tables of one class that use it."""

    size: int
    scalars: list[tuple[str, struct.Struct, int, dict[int, IntEnum] | None]]
    references: list[tuple[Field, int]]
    unions: list[tuple[Field, int, int]]  # the union, where its value's offset lies (0: nowhere), where its type lies
    unknown: list[int]  # ids of fields that the class does not declare
    wide: list[int]  # where scalars of 8 bytes lie; tables begin at multiples of 4


class _Decoder:
    def __init__(self, buffer: memoryview, where: str, unknown: list[str]) -> None:
        self.buffer = buffer
        self.array = np.frombuffer(buffer, np.uint8)
        self.array.flags.writeable = False
        self.size = len(buffer)
        self.where = where
        self.unknown = unknown
        self.layouts: dict[tuple[int, type[Table]], _Layout] = {}
        # A table takes at least 8 bytes: its offset in a vector or table, and its offset to a vtable.
        self.tables_left = self.size // 8 + 8
        self.bytes_left = self.size * _SHARED
        self.strings: dict[int, str] = {}

    def fail(self, what: str, position: int) -> ModelError:
        return ModelError(
            f"The model is not a valid Flatbuffer buffer: {what} at byte {position} of {self.where} ({self.size} bytes); "
            "the file is truncated or damaged, fetch or convert it again."
        )

    def note(self, what: str, position: int) -> None:
        if len(self.unknown) < _UNKNOWN_KEPT:
            self.unknown.append(f"{what} at byte {position}")

    def root(self, cls: type[T]) -> T:
        if self.size < 8:
            raise self.fail("no room for a root offset", 0)
        return self.table(cls, self.follow(0, "root offset"))

    def follow(self, position: int, what: str) -> int:
        target = position + int(_UOFFSET.unpack_from(self.buffer, position)[0])
        if target + 4 > self.size:
            raise self.fail(f"{what} leads outside the file, to {target},", position)
        return target

    def layout(self, cls: type[Table], vtable: int, position: int) -> _Layout:
        """Read a vtable for tables of `cls`; `position` is the first such table."""
        if position % 4 or vtable < 0 or vtable % 2 or vtable + 4 > self.size:
            raise self.fail(f"{cls.__name__} has no vtable inside the file", position)
        vtable_size, size = _VTABLE_HEAD.unpack_from(self.buffer, vtable)
        if vtable_size < 4 or vtable_size % 2 or vtable + vtable_size > self.size:
            raise self.fail(f"{cls.__name__} does not fit into the file", position)
        slots = self.array[vtable + 4 : vtable + vtable_size].view("<u2")
        declared = cls.fields[-1].id + 1 if cls.fields else 0
        left = set(np.flatnonzero(slots[:declared]).tolist())  # set in the vtable and not yet met in the class
        later = slots[declared:]
        if later.any():  # naming the first is enough
            left.add(declared + int((later != 0).argmax()))
        layout = _Layout(size, [], [], [], [], [])
        for field in cls.fields:
            hidden = int(slots[field.id - 1]) if field.kind == "union" and field.id - 1 in left else 0
            offset = int(slots[field.id]) if field.id in left else 0
            left -= {field.id, field.id - 1} if field.kind == "union" else {field.id}
            if offset and offset + (field.flags.bytewidth if field.kind == "scalar" else 4) > size:
                raise self.fail(f"field {field.name} lies outside its {cls.__name__}", position + offset)
            if hidden and hidden + 1 > size:
                raise self.fail(f"the type of union {cls.__name__}.{field.name} lies outside its table", position + hidden)
            if field.kind == "union":
                if offset or hidden:
                    layout.unions.append((field, offset, hidden))
            elif not offset:
                continue
            elif field.kind == "scalar":
                members = None if field.enum is None else _members(field.enum)
                width = field.flags.bytewidth
                if offset % min(width, 4):
                    raise self.fail(f"field {field.name} of {cls.__name__} is not aligned", position + offset)
                if width == 8:
                    layout.wide.append(offset)
                layout.scalars.append((field.name, field.flags.packer_type, offset, members))
            else:
                layout.references.append((field, offset))
        layout.unknown.extend(sorted(left))
        self.layouts[vtable, cls] = layout
        return layout

    def table(self, cls: type[T], position: int) -> T:
        self.tables_left -= 1
        if self.tables_left < 0:
            raise self.fail("more tables than its bytes can hold", position)
        buffer = self.buffer
        vtable = position - _SOFFSET.unpack_from(buffer, position)[0]
        size, scalars, references, unions, unknown, wide = self.layouts.get((vtable, cls)) or self.layout(cls, vtable, position)
        if position % 4 or position + size > self.size:
            raise self.fail(f"{cls.__name__} does not fit into the file", position)
        for offset in wide:
            if (position + offset) % 8:
                raise self.fail(f"a field of {cls.__name__} is not aligned", position + offset)
        result = cls.__new__(cls)
        values = result.__dict__
        for name, packed, offset, members in scalars:
            number = packed.unpack_from(buffer, position + offset)[0]
            values[name] = number if members is None else members.get(number, number)
        for field, offset in references:
            values[field.name] = self.reference(cls, field, position + offset)
        for field, offset, hidden in unions:
            value = self.union(cls, field, position, offset, hidden)
            if value is not None:
                values[field.name] = value
        if unknown:
            for id in unknown:
                self.note(f"field {id} of {cls.__name__}", position)
        return result

    def union(self, cls: type[Table], field: Field, position: int, offset: int, hidden: int) -> Table | None:
        member = self.buffer[position + hidden] if hidden else 0
        known = (field.members or {}).get(member)
        if offset and known is not None:
            return self.table(known, self.follow(position + offset, f"{cls.__name__}.{field.name}"))
        # A member of a later schema: the op that needs it reports what it misses.
        if member:
            self.note(
                f"member {member} of the union {cls.__name__}.{field.name}{'' if offset else ', which has no value'}", position
            )
        elif offset:
            self.note(f"a value of no type in the union {cls.__name__}.{field.name}", position)
        return None

    def reference(self, cls: type[Table], field: Field, at: int) -> Any:
        target = at + _UOFFSET.unpack_from(self.buffer, at)[0]
        if target + 4 > self.size:
            raise self.fail(f"{cls.__name__}.{field.name} leads outside the file, to {target},", at)
        if field.kind == "table":
            return self.table(field.table or Table, target)
        if target % 4:
            raise self.fail(f"{cls.__name__}.{field.name} is not aligned", target)
        length = _UOFFSET.unpack_from(self.buffer, target)[0]
        start = target + 4
        if field.kind == "vector":
            dtype = field.dtype
            end = start + length * dtype.itemsize
            if end > self.size:
                raise self.fail(f"{cls.__name__}.{field.name} of {length} values does not fit into the file", target)
            self.bytes_left -= end - start
            if self.bytes_left < 0:
                raise self.fail(f"{cls.__name__}.{field.name} shares its bytes with too many others", target)
            return self.array[start:end].view(dtype)
        if field.kind == "string":
            if start + length + 1 > self.size or self.buffer[start + length]:
                raise self.fail(f"{cls.__name__}.{field.name} of {length} bytes does not fit into the file", target)
            return self.string(start, length)
        if start + length * 4 > self.size:
            raise self.fail(f"{cls.__name__}.{field.name} of {length} tables does not fit into the file", target)
        table = field.table or Table
        what = f"{cls.__name__}.{field.name}"
        return [self.table(table, self.follow(at, what)) for at in range(start, start + 4 * length, 4)]

    def string(self, start: int, length: int) -> str:
        text = self.strings.get(start) if length > _LONG else None
        if text is None:
            text = str(self.buffer[start : start + length], "utf-8", "surrogateescape")
            if length > _LONG:
                self.strings[start] = text
        return text


class _Measuring(_Decoder):
    """Notes how far the tables reach."""

    end = 8

    def layout(self, cls: type[Table], vtable: int, position: int) -> _Layout:
        layout = super().layout(cls, vtable, position)
        self.end = max(self.end, vtable + int(_VTABLE_HEAD.unpack_from(self.buffer, vtable)[0]))
        return layout

    def table(self, cls: type[T], position: int) -> T:
        table = super().table(cls, position)
        vtable = position - _SOFFSET.unpack_from(self.buffer, position)[0]
        self.end = max(self.end, position + self.layouts[vtable, cls].size)
        return table

    def reference(self, cls: type[Table], field: Field, at: int) -> Any:
        value = super().reference(cls, field, at)
        if field.kind != "table":
            target = at + _UOFFSET.unpack_from(self.buffer, at)[0]
            length = _UOFFSET.unpack_from(self.buffer, target)[0]
            width = {"vector": field.dtype.itemsize if field.kind == "vector" else 0, "string": 1}.get(field.kind, 4)
            self.end = max(self.end, target + 4 + length * width + (field.kind == "string"))
        return value


def _members(enum: type[IntEnum]) -> dict[int, IntEnum]:
    members = _ENUM_MEMBERS.get(enum)
    if members is None:
        members = _ENUM_MEMBERS[enum] = {int(m): m for m in enum}
    return members
