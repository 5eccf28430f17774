"""Read tables from FlatBuffers bytes, checking every offset before it is followed.

The file comes from a stranger: each table, vtable, vector and string must lie inside the buffer, and the number of
tables is bounded by the file's size, so that reading takes time linear in it whatever its offsets say.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Any, TypeVar

import numpy as np

from oplet.errors import ModelError
from oplet.schema.table import Field, Table

__all__ = ["decode"]

T = TypeVar("T", bound=Table)

_UOFFSET = struct.Struct("<I")
_SOFFSET = struct.Struct("<i")
_VTABLE_HEAD = struct.Struct("<HH")
_ENUM_MEMBERS: dict[type[IntEnum], dict[int, IntEnum]] = {}


def decode(cls: type[T], buffer: memoryview, where: str = "the model") -> T:
    """Decode the root table of a FlatBuffer.

    Args:
        cls: the root table's class.
        buffer: the whole file; vectors of numbers become read-only views of it.
        where: what errors call the file.

    Raises:
        ModelError: an offset, vector, string or union does not lie inside the file.
    """
    return _Decoder(buffer, where).root(cls)


class _Decoder:
    def __init__(self, buffer: memoryview, where: str) -> None:
        self.buffer = buffer
        self.array = np.frombuffer(buffer, np.uint8)
        self.array.flags.writeable = False
        self.size = len(buffer)
        self.where = where
        # A table takes at least 8 bytes: its offset in a vector or table, and its offset to a vtable.
        self.tables_left = self.size // 8 + 8

    def fail(self, what: str, position: int) -> ModelError:
        return ModelError(
            f"The model is not a valid Flatbuffer buffer: {what} at byte {position} of {self.where} ({self.size} bytes); "
            "the file is truncated or damaged, fetch or convert it again."
        )

    def root(self, cls: type[T]) -> T:
        if self.size < 8:
            raise self.fail("no room for a root offset", 0)
        return self.table(cls, self.follow(0, "root offset"))

    def follow(self, position: int, what: str) -> int:
        target = position + int(_UOFFSET.unpack_from(self.buffer, position)[0])
        if target + 4 > self.size:
            raise self.fail(f"{what} leads outside the file, to {target},", position)
        return target

    def table(self, cls: type[T], position: int) -> T:
        self.tables_left -= 1
        if self.tables_left < 0:
            raise self.fail("more tables than its bytes can hold", position)
        vtable = position - _SOFFSET.unpack_from(self.buffer, position)[0]
        if position % 4 or vtable < 0 or vtable % 2 or vtable + 4 > self.size:
            raise self.fail(f"{cls.__name__} has no vtable inside the file", position)
        vtable_size, table_size = _VTABLE_HEAD.unpack_from(self.buffer, vtable)
        if vtable_size < 4 or vtable_size % 2 or vtable + vtable_size > self.size or position + table_size > self.size:
            raise self.fail(f"{cls.__name__} does not fit into the file", position)
        slots = struct.unpack_from(f"<{(vtable_size - 4) // 2}H", self.buffer, vtable + 4)
        result = cls.__new__(cls)
        values = result.__dict__
        count = len(slots)
        for field in cls.fields:
            if field.id < count and (offset := slots[field.id]):
                value = self.value(cls, field, position, offset, slots, table_size)
                if value is not None:
                    values[field.name] = value
        return result

    def value(self, cls: type[Table], field: Field, position: int, offset: int, slots: tuple[int, ...], table_size: int) -> Any:
        at = position + offset
        if field.kind == "scalar":
            flags = field.flags
            if offset + flags.bytewidth > table_size:
                raise self.fail(f"field {field.name} lies outside its {cls.__name__}", at)
            number = flags.packer_type.unpack_from(self.buffer, at)[0]
            if field.enum is not None:
                return _members(field.enum).get(number, number)
            return number
        if offset + 4 > table_size:
            raise self.fail(f"field {field.name} lies outside its {cls.__name__}", at)
        what = f"{cls.__name__}.{field.name}"
        if field.kind == "union":
            type_offset = slots[field.id - 1]
            if not type_offset:
                return None
            if type_offset + 1 > table_size:
                raise self.fail(f"the type of union {what} lies outside its table", at)
            member = self.buffer[position + type_offset]
            if not member or field.members is None or member not in field.members:
                return None  # a member of a later schema: the op that needs it reports what it misses
            return self.table(field.members[member], self.follow(at, what))
        target = self.follow(at, what)
        if field.kind == "table":
            return self.table(field.table or Table, target)
        length = _UOFFSET.unpack_from(self.buffer, target)[0]
        start = target + 4
        if field.kind == "vector":
            dtype = field.dtype
            if start + length * dtype.itemsize > self.size:
                raise self.fail(f"{what} of {length} values does not fit into the file", target)
            return self.array[start : start + length * dtype.itemsize].view(dtype)
        if field.kind == "string":
            if start + length + 1 > self.size:
                raise self.fail(f"{what} of {length} bytes does not fit into the file", target)
            return bytes(self.buffer[start : start + length]).decode("utf-8", "surrogateescape")
        if start + length * 4 > self.size:
            raise self.fail(f"{what} of {length} tables does not fit into the file", target)
        table = field.table or Table
        return [self.table(table, self.follow(start + 4 * i, what)) for i in range(length)]


def _members(enum: type[IntEnum]) -> dict[int, IntEnum]:
    members = _ENUM_MEMBERS.get(enum)
    if members is None:
        members = _ENUM_MEMBERS[enum] = {int(m): m for m in enum}
    return members
