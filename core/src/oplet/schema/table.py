"""Declarations of FlatBuffers tables, from which decoding, checking and encoding follow.

A table is a class whose attributes are field specifiers, in the order of their FlatBuffers ids::

    class Pool2DOptions(Table):
        padding: Padding = enum(0, Padding)
        stride_w: int = int32(1)

An instance holds only what differs from the defaults; everything else reads as the class attribute. Vectors of
numbers decode to read-only numpy views of the file, never to copies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from operator import attrgetter
from typing import Any, ClassVar, Final

import numpy as np

__all__ = ["Field", "Table"]

#: Characters of a value that the `repr` of its table shows.
_LONGEST = 1000


class Field:
    """One field of a table.

    Attributes:
        id: slot of the field in the vtable (a union's value takes the slot after its hidden type).
        kind: "scalar", "string", "table", "vector" (of scalars), "strings" (vector of strings), "tables" (vector of tables) or "union".
        number: the name of the type of a scalar or of a vector's elements, "" for other kinds.
        format: that type's character in formats of `struct`.
        dtype: that type, little-endian, of numpy.
        default: the value of an absent field.
        enum: the enumeration that a scalar's value belongs to, if any.
        table: the table class of a table or a vector of tables.
        members: a union's table classes by member number; some are imported when they are first asked for.
        since: the first op version that knows the field.
        shared: whether several vectors of this field may share the same bytes of a file.
    """

    __slots__ = ("_members", "default", "dtype", "enum", "format", "id", "kind", "name", "number", "shared", "since", "table")

    def __init__(
        self,
        id: int,
        kind: str,
        *,
        number: str = "",
        default: Any = None,
        enum: type[IntEnum] | None = None,
        table: type[Table] | None = None,
        members: Mapping[int, type[Table]] | Callable[[], Mapping[int, type[Table]]] | None = None,
        since: int = 1,
        shared: bool = False,
    ) -> None:
        self.id = id
        self.kind = kind
        self.number = number
        self.format = _FORMATS.get(number, "")
        self.dtype: Any = _DTYPES[number] if number else None
        self.default = default
        self.enum = enum
        self.table = table
        self._members = members
        self.since = since
        self.shared = shared
        self.name = ""

    @property
    def members(self) -> Mapping[int, type[Table]] | None:
        if callable(self._members):
            self._members = self._members()
        return self._members

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name


#: The formats of `struct`, which numpy shares, by the names of FlatBuffers' types.
_FORMATS: Final = {
    "bool": "?",
    "int8": "b",
    "uint8": "B",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "uint64": "Q",
    "float32": "f",
}
#: The types themselves, little-endian, once for hundreds of fields.
_DTYPES: Final = {number: np.dtype(f"<{format}") for number, format in _FORMATS.items()}


# The functions below return Any so that `stride_w: int = int32(1)` type-checks: the class attribute that remains
# after __init_subclass__ is the field's default, of the annotated type.


def _scalar(number: str, default: Any = 0) -> Callable[..., Any]:
    def declare(id: int, default: Any = default, *, since: int = 1) -> Any:
        """Declare a field of this type in the vtable slot `id`; `since` is the first op version that knows it."""
        return Field(id, "scalar", number=number, default=default, since=since)

    return declare


boolean, float32 = _scalar("bool", False), _scalar("float32", 0.0)
int8, int32, uint32, int64, uint64 = map(_scalar, ("int8", "int32", "uint32", "int64", "uint64"))


def enum(id: int, cls: type[IntEnum], default: int = 0, *, width: str = "int8", since: int = 1) -> Any:
    """Declare a field with a member of `cls`, of integer type `width`; an unknown number stays a plain int."""
    return Field(id, "scalar", number=width, default=cls(default), enum=cls, since=since)


def string(id: int) -> Any:
    """Declare a UTF-8 string field in the vtable slot `id`; absent reads as None."""
    return Field(id, "string")


def table(id: int, cls: type[Table]) -> Any:
    """Declare a field that holds one table, in the vtable slot `id`; absent reads as None."""
    return Field(id, "table", table=cls)


def tables(id: int, cls: type[Table]) -> Any:
    """Declare a vector of tables in the vtable slot `id`, decoded to a list; absent reads as None."""
    return Field(id, "tables", table=cls)


def strings(id: int) -> Any:
    """Declare a vector of UTF-8 strings in the vtable slot `id`, decoded to a list; absent reads as None."""
    return Field(id, "strings")


def union(id: int, members: Mapping[int, type[Table]] | Callable[[], Mapping[int, type[Table]]]) -> Any:
    """Declare a union; `id` is the value's slot, the hidden type sits in the slot before. Absent reads as None.

    `members` are its table classes by number, or a function that imports them.
    """
    return Field(id, "union", members=members)


def vector(id: int, element: str, *, enum: type[IntEnum] | None = None, since: int = 1, shared: bool = False) -> Any:
    """Declare a vector of numbers, decoded to a numpy view; absent reads as None, which is not the same as empty.

    Args:
        element: "bool", "int8", "uint8", "uint16", "int32", "uint32", "int64" or "float32".
        shared: whether several vectors may share the same bytes of a file, as constants may; they are never copied.
    """
    return Field(id, "vector", number=element, enum=enum, since=since, shared=shared)


class Table:
    """Base of all tables: construction by keywords, equality by value, and a repr of the fields that are set."""

    fields: ClassVar[tuple[Field, ...]] = ()

    def __init_subclass__(cls) -> None:
        declared = [value for value in vars(cls).values() if value.__class__ is Field]
        if declared:  # every other table of options has none
            cls.fields = tuple(sorted(declared, key=attrgetter("id")))
            for field in declared:
                setattr(cls, field.name, field.default)

    def __init__(self, **values: Any) -> None:
        for name, value in values.items():
            if not hasattr(type(self), name) or name == "fields":
                raise TypeError(f"{type(self).__name__} has no field {name!r}")
            setattr(self, name, value)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(_same(getattr(self, field.name), getattr(other, field.name)) for field in self.fields)

    __hash__ = None  # type: ignore[assignment]  # tables are mutable

    def __repr__(self) -> str:
        shown = (f"{f.name}={_short(getattr(self, f.name))}" for f in self.fields if f.name in self.__dict__)
        return f"{type(self).__name__}({', '.join(shown)})"


def union_members(names: Mapping[str, Any]) -> dict[int, type[Table]]:
    """Return the members of a union, all table classes that a module declares, by their numbers: FlatBuffers counts them from 1, in the
    order of their declaration.

    Args:
        names: the module's names, `globals()`.
    """
    classes = [value for value in names.values() if isinstance(value, type) and issubclass(value, Table) and value is not Table]
    return dict(enumerate(classes, 1))


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        if a is None or b is None:
            return False
        a, b = np.asarray(a), np.asarray(b)
        return a.shape == b.shape and bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f" and b.dtype.kind == "f"))
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (a != a and b != b)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b))
    return bool(a == b)


def _short(value: Any) -> str:
    if isinstance(value, IntEnum):
        return value.name
    if isinstance(value, np.ndarray):
        return str(value.tolist()) if value.size <= 16 else f"<{value.size} x {value.dtype}>"
    if isinstance(value, list) and len(value) > 4:
        return f"<{len(value)} x {type(value[0]).__name__}>"
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text)} characters)"
