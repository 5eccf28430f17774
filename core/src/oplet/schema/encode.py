"""Write tables as FlatBuffers bytes, the same bytes for equal tables.

The file is written forwards: a table, then what it refers to. Long vectors come last, after everything else, so that a
reader finds all tables in the first pages of the file, and so that they can be handed on as they are, never copied.
"""

from __future__ import annotations

import struct
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oplet.errors import ModelError
from oplet.schema.table import Field, Table

__all__ = ["PADDING", "encode", "encode_pieces"]

#: The end of a file: vector instructions may read this far past the last constant.
PADDING: Final = bytes(16)

#: Alignment of byte vectors inside the file: tensor data must suit any element type and vector instruction.
_BYTES_ALIGNMENT = 16

#: Vectors of this many bytes go to the end of the file.
_LONG = 2048

#: Offsets are 32 bits wide.
_LARGEST = 2**32

_UOFFSET = struct.Struct("<I")


def encode(root: Table, identifier: bytes = b"TFL3") -> bytes:
    """Encode a table and everything below it as a FlatBuffer.

    Fields that equal their defaults are left out, as FlatBuffers does.

    Args:
        root: the root table.
        identifier: the four bytes of the file identifier.

    Raises:
        ModelError: a value is not one that its field can hold.
    """
    return b"".join(encode_pieces(root, identifier))


def encode_pieces(root: Table, identifier: bytes = b"TFL3") -> list[bytes | memoryview]:
    """Encode a table as `encode` does, in pieces whose concatenation is the file; long vectors are views and not copied.

    Raises:
        ModelError: a value is not one that its field can hold, or the file would be larger than its offsets reach.
    """
    return _Writer(identifier).finish(root)


class _Layout(NamedTuple):
    """Layout of the tables that have the same set of fields: the widest field first, so that no padding is needed."""

    vtable: int
    pack: struct.Struct
    order: list[int]  # ids of the fields in the order in which they are packed
    offsets: dict[int, int]  # position of each field in the table, by id
    wide: bool  # whether it has 8-byte scalars


class _Writer:
    def __init__(self, identifier: bytes) -> None:
        self.out = bytearray(4) + identifier
        self.layouts: dict[tuple[type[Table], tuple[int, ...]], _Layout] = {}
        self.vtables: dict[bytes, int] = {}
        self.long: list[tuple[int, NDArray[Any]]] = []  # position of the offset that refers to the vector, and the vector

    def finish(self, root: Table) -> list[bytes | memoryview]:
        self.point(0, self.table(root))
        position = len(self.out)
        tail: list[bytes | memoryview] = []
        for at, vector in self.long:
            gap = -(position + 4) % _BYTES_ALIGNMENT
            if position + gap - at >= _LARGEST:
                raise ModelError("The model's constants take more than 4 GB, which is as far as offsets in the file reach.")
            self.point(at, position + gap)
            tail.append(bytes(gap) + _UOFFSET.pack(vector.size))
            tail.append(vector.view(np.uint8).data)
            position += gap + 4 + vector.nbytes
        return [bytes(self.out), *tail, PADDING]

    def point(self, at: int, target: int) -> None:
        """Write at position `at` the FlatBuffers offset that leads to `target`."""
        _UOFFSET.pack_into(self.out, at, target - at)

    def align(self, size: int, ahead: int = 0) -> int:
        """Pad so that the position `ahead` bytes further is aligned to `size`; return the present position."""
        out = self.out
        gap = -(len(out) + ahead) % size
        if gap:
            out += bytes(gap)
        return len(out)

    def layout(self, cls: type[Table], ids: tuple[int, ...]) -> _Layout:
        widths: dict[int, str] = {}
        for field in cls.fields:
            if field.id in ids:
                widths[field.id] = field.format if field.kind == "scalar" else "I"
                if field.kind == "union":
                    widths[field.id - 1] = "B"
        order = sorted(widths, key=lambda id: (-struct.calcsize(f"<{widths[id]}"), id))
        codes = "".join(widths[id] for id in order)
        offsets = {id: struct.calcsize(f"<i{codes[:i]}") for i, id in enumerate(order)}
        pack = struct.Struct(f"<i{codes}")
        slots = [offsets.get(id, 0) for id in range(max(order, default=-1) + 1)]
        raw = struct.pack(f"<HH{len(slots)}H", 4 + 2 * len(slots), pack.size, *slots)
        if raw not in self.vtables:
            self.vtables[raw] = self.align(2)
            self.out += raw
        found = _Layout(self.vtables[raw], pack, order, offsets, any(struct.calcsize(f"<{c}") == 8 for c in codes))
        self.layouts[cls, ids] = found
        return found

    def table(self, table: Table) -> int:
        """Write a table, then everything it refers to; return the table's position."""
        values: dict[int, Any] = {}
        references: list[tuple[Field, Any]] = []
        own = table.__dict__
        cls = type(table)
        for field in cls.fields:
            value = own.get(field.name)
            if value is None:
                continue
            if field.kind == "scalar":
                if value != field.default:
                    values[field.id] = value
            else:
                values[field.id] = 0
                references.append((field, value))
        ids = tuple(values)
        layout = self.layouts.get((cls, ids)) or self.layout(cls, ids)
        for field, value in references:
            if field.kind == "union":
                values[field.id - 1] = _member(cls, field, value)
        position = self.align(8, 4) if layout.wide else self.align(4)
        try:
            self.out += layout.pack.pack(position - layout.vtable, *[values[id] for id in layout.order])
        except (struct.error, OverflowError, TypeError):
            raise _unfit(cls, values) from None
        for field, value in references:
            self.reference(cls, field, value, position + layout.offsets[field.id])
        return position

    def reference(self, cls: type[Table], field: Field, value: Any, at: int) -> None:
        """Write the value of a field outside of its table, and the offset to it at `at`."""
        if field.kind == "vector":
            self.vector(_array(cls, field, value), at)
        elif field.kind == "string":
            self.string(_string(cls, field, value), at)
        elif field.kind in ("strings", "tables"):
            start = self.align(4)
            self.point(at, start)
            self.out += _UOFFSET.pack(len(value)) + bytes(4 * len(value))
            for place, item in enumerate(value, 1):
                if field.kind == "strings":
                    self.string(_string(cls, field, item), start + 4 * place)
                else:
                    self.point(start + 4 * place, self.table(_checked(cls, field, item)))
        else:
            self.point(at, self.table(value if field.kind == "union" else _checked(cls, field, value)))

    def string(self, raw: bytes, at: int) -> None:
        self.point(at, self.align(4))
        self.out += _UOFFSET.pack(len(raw)) + raw + b"\0"

    def vector(self, array: NDArray[Any], at: int) -> None:
        if array.nbytes >= _LONG:
            self.long.append((at, array))
            return
        self.align(4)
        self.point(at, self.align(_BYTES_ALIGNMENT if array.itemsize == 1 else array.itemsize, 4))
        self.out += _UOFFSET.pack(array.size) + array.tobytes()


def _member(cls: type[Table], field: Field, value: Any) -> int:
    for number, member in (field.members or {}).items():
        if member is type(value):
            return number
    raise ModelError(f"{cls.__name__}.{field.name} is a {type(value).__name__}, which is not a member of that union.")


def _checked(cls: type[Table], field: Field, value: Any) -> Table:
    wanted = field.table or Table
    if not isinstance(value, wanted):
        raise ModelError(f"{cls.__name__}.{field.name} takes {wanted.__name__}, not a {type(value).__name__}.")
    return value


def _string(cls: type[Table], field: Field, value: Any) -> bytes:
    try:
        return bytes(value.encode("utf-8", "surrogateescape"))
    except (AttributeError, UnicodeEncodeError):
        raise ModelError(f"{cls.__name__}.{field.name} is {value!r}, which is not text that UTF-8 can hold.") from None


def _array(cls: type[Table], field: Field, value: Any) -> NDArray[Any]:
    """Convert the values of a vector to an array of the field's dtype.

    Raises:
        ModelError: the dtype cannot hold a value; nothing wraps around.
    """
    array = np.asarray(value).ravel()
    dtype = field.dtype
    if array.dtype != dtype:
        with np.errstate(all="ignore"):
            try:
                cast = array.astype(dtype)
            except (TypeError, ValueError, OverflowError):
                cast = None
        if cast is None or (dtype.kind != "f" and not np.array_equal(cast, array)):
            raise ModelError(
                f"{cls.__name__}.{field.name} holds {array.dtype} values that do not fit into its vector of {dtype.name}."
            )
        array = cast
    return np.ascontiguousarray(array)


def _unfit(cls: type[Table], values: dict[int, Any]) -> ModelError:
    """Return an error that names the first value of a table that cannot be packed."""
    for field in cls.fields:
        if field.kind == "scalar" and field.id in values:
            try:
                struct.pack(f"<{field.format}", values[field.id])
            except (struct.error, OverflowError, TypeError):
                return ModelError(
                    f"{cls.__name__}.{field.name} is {values[field.id]!r}, which does not fit into its field of type {field.number}."
                )
    return ModelError(f"{cls.__name__} has too much to write.")
