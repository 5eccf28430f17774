"""Write tables as FlatBuffers bytes, the same bytes for equal tables."""

from __future__ import annotations

from typing import Any

import flatbuffers
import numpy as np

from oplet.schema.table import Field, Table

__all__ = ["encode"]

#: Alignment of byte vectors inside the file: tensor data must suit any element type and vector instruction.
_BYTES_ALIGNMENT = 16


def encode(root: Table, identifier: bytes = b"TFL3", size_hint: int = 1024) -> bytes:
    """Encode a table and everything below it as a FlatBuffer.

    Fields that equal their defaults are left out, as FlatBuffers does.

    Args:
        root: the root table.
        identifier: the four bytes of the file identifier.
        size_hint: the expected size in bytes, to spare growing.
    """
    builder = flatbuffers.Builder(size_hint)
    builder.Finish(_table(builder, root), file_identifier=identifier)
    return bytes(builder.Output())


def _table(builder: flatbuffers.Builder, table: Table) -> int:
    """Write the children first (FlatBuffers grows downwards), then the table itself; return its offset."""
    present: list[tuple[Field, Any]] = []
    for field in table.fields:
        value = table.__dict__.get(field.name)
        if value is None:
            continue
        if field.kind == "scalar":
            if value != field.default:
                present.append((field, value))
        else:
            present.append((field, _child(builder, field, value)))
    slots = max((field.id for field in table.fields), default=-1) + 1
    builder.StartObject(slots)
    for field, value in present:
        if field.kind == "scalar":
            builder.Prep(field.flags.bytewidth, 0)
            builder.Place(field.flags.py_type(value), field.flags)
            builder.Slot(field.id)
        elif field.kind == "union":
            member, offset = value
            builder.PrependUint8Slot(field.id - 1, member, 0)
            builder.PrependUOffsetTRelativeSlot(field.id, offset, 0)
        else:
            builder.PrependUOffsetTRelativeSlot(field.id, value, 0)
    return int(builder.EndObject())


def _child(builder: flatbuffers.Builder, field: Field, value: Any) -> Any:
    if field.kind == "table":
        return _table(builder, value)
    if field.kind == "union":
        member = next((n for n, cls in (field.members or {}).items() if cls is type(value)), None)
        if member is None:
            raise TypeError(f"{type(value).__name__} is not a member of the union {field.name}")
        return member, _table(builder, value)
    if field.kind == "string":
        return builder.CreateString(value.encode("utf-8", "surrogateescape"))
    if field.kind == "vector":
        array = np.ascontiguousarray(value, field.dtype)
        return _vector(builder, array)
    offsets = [_table(builder, item) for item in value]
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return builder.EndVector()


def _vector(builder: flatbuffers.Builder, array: np.ndarray[Any, Any]) -> int:
    alignment = _BYTES_ALIGNMENT if array.dtype == np.uint8 else array.itemsize
    builder.StartVector(array.itemsize, array.size, alignment)
    data = array.tobytes()
    head = builder.Head() - len(data)
    builder.head = head
    builder.Bytes[head : head + len(data)] = data
    return int(builder.EndVector())
