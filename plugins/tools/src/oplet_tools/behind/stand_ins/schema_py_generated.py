"""Stand-in for `ai_edge_litert.schema_py_generated`: what FlatBuffers' compiler generates for Python, made of oplet's own tables.

For each table T of the schema there are a reader `T` of packed bytes, an object `TT` with the values as attributes, and the functions `TStart`,
`TAddField`, `TStartFieldVector` and `TEnd`, which write one with a `flatbuffers.Builder`; for each union a function that makes its members'
objects; enumerations are classes of numbers. They differ from generated ones in nothing that programs see: the bytes that they write are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any

import numpy as np

try:
    from flatbuffers import encode, number_types, packer, table, util
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "The schema's classes read and write with the package flatbuffers, which is not installed: pip install flatbuffers.",
        name=error.name,
    ) from error

from oplet.schema import enums, options, stablehlo_options, tables
from oplet.schema.table import Field, Table

_UNIONS: dict[str, Mapping[int, type[Table]]] = {
    "QuantizationDetails": tables.QuantizationDetails,
    "SparseIndexVector": tables.SparseIndexVector,
    "BuiltinOptions": options.BuiltinOptions,
    "BuiltinOptions2": stablehlo_options.BuiltinOptions2,
}
#: Fields of the schema that are marked as deprecated, of which generated code has nothing.
_GONE = {("SignatureDef", "deprecated_tag"), ("ResizeBilinearOptions", "new_height"), ("ResizeBilinearOptions", "new_width")}
#: Fields of the schema that no kernel reads, and so oplet's tables have not: name, slot and the type of a vector's elements.
_FURTHER = {"BlockwiseQuantization": [("block_shape", 3, "int32")], "FullyConnectedOptions": [("quant_spec", 5, "uint8")]}
#: FlatBuffers' names of the types, and the type of the number that says which member of a union there is.
_FLAGS = {
    name: getattr(number_types, f"{name.capitalize()}Flags")
    for name in ("bool", "int8", "uint8", "uint16", "int32", "uint32", "int64", "uint64", "float32")
}
_OFFSET = number_types.UOffsetTFlags


class _Reader:
    """What reads a table of packed bytes in place; each class has the table's fields as methods."""

    __slots__ = ("_tab",)

    @classmethod
    def GetRootAs(cls, buf: Any, offset: int = 0) -> Any:
        """Return the table that is the root of bytes."""
        made = cls()
        made.Init(buf, encode.Get(packer.uoffset, buf, offset) + offset)
        return made

    def Init(self, buf: Any, pos: int) -> None:
        """Read the table at a position of bytes."""
        self._tab = table.Table(buf, pos)


class _Object:
    """A table as an object, whose fields are attributes that can be changed."""

    _reader: type[_Reader]
    _defaults: dict[str, Any]
    _unpacks: list[Callable[[Any, Any], None]]
    _packs: list[Callable[[Any, Any], Callable[[], None]]]
    _slots: int

    def __init__(self, *values: Any, **named: Any) -> None:
        self.__dict__.update(self._defaults)
        given = dict(zip(self._defaults, values))
        wrong = [name for name in named if name not in self._defaults or name in given]
        if len(values) > len(self._defaults) or wrong:
            raise TypeError(f"{type(self).__name__}.__init__() takes {', '.join(self._defaults) or 'nothing'}, each once.")
        self.__dict__.update(given, **named)

    @classmethod
    def InitFromBuf(cls, buf: Any, pos: int) -> Any:
        """Return the object of a table at a position of bytes."""
        found = cls._reader()
        found.Init(buf, pos)
        return cls.InitFromObj(found)

    @classmethod
    def InitFromPackedBuf(cls, buf: Any, pos: int = 0) -> Any:
        """Return the object of the table that is the root of bytes."""
        return cls.InitFromBuf(buf, pos + encode.Get(packer.uoffset, buf, pos))

    @classmethod
    def InitFromObj(cls, reader: Any) -> Any:
        """Return the object of a table that a reader reads."""
        made = cls()
        made._UnPack(reader)
        return made

    def _UnPack(self, reader: Any) -> None:
        if reader is not None:
            for unpack in self._unpacks:
                unpack(self, reader)

    def Pack(self, builder: Any) -> Any:
        """Write the object with a `flatbuffers.Builder`; return where it lies."""
        adds = [pack(self, builder) for pack in self._packs]
        builder.StartObject(self._slots)
        for add in adds:
            add()
        return builder.EndObject()


class _Parts:
    """What the classes of a table are made of.

    Args:
        name: the table's name.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.methods: dict[str, Any] = {}
        self.defaults: dict[str, Any] = {}
        self.unpacks: list[Callable[[Any, Any], None]] = []
        self.packs: list[Callable[[Any, Any], Callable[[], None]]] = []

    def add(self, name: str, read: Any, default: Any, unpack: Callable[[Any], Any], pack: Any, write: Any) -> None:
        """Add a field.

        Args:
            name: its name in the schema.
            read: the reader's method.
            default: the object's value where the field is absent.
            unpack: returns the object's value, given a reader.
            pack: writes what lies outside of the table, given the value and a builder, and returns what writes the field itself.
            write: the function that writes the field, given a builder and the value.
        """
        method, attribute = _spellings(name)
        self.methods[method], self.defaults[attribute], _names[f"{self.name}Add{method}"] = read, default, write
        self.unpacks.append(lambda made, reader: setattr(made, attribute, unpack(reader)))
        self.packs.append(lambda made, builder: pack(getattr(made, attribute), builder))

    def add_at_offset(self, field: Field, read: Any, unpack: Callable[[Any], Any], pack: Callable[[Any, Any], Any]) -> None:
        """Add a field whose value lies elsewhere; `pack` returns where, given a builder and the value, which it writes."""

        def write(builder: Any, offset: Any) -> None:
            builder.PrependUOffsetTRelativeSlot(field.id, _OFFSET.py_type(offset), 0)

        def packed(value: Any, builder: Any) -> Callable[[], None]:
            if value is None:
                return lambda: None
            offset = pack(builder, value)
            return lambda: write(builder, offset)

        self.add(field.name, read, None, unpack, packed, write)

    def add_vector(
        self,
        field: Field,
        size: int,
        item: Callable[[Any, int], Any],
        absent: Any,
        unpack: Callable[[Any], Any],
        pack: Callable[[Any, Any], Any],
    ) -> None:
        """Add a vector.

        Args:
            size: the bytes of an element.
            item: returns an element, given the reader's table and the element's position.
            absent: what reads as an element where there is no vector.
            unpack: returns the object's value of a reader whose vector is there.
            pack: as for `add_at_offset`.
        """
        method, _ = _spellings(field.name)
        entry = _entry(field)

        def read(self: Any, j: int) -> Any:
            at = self._tab.Offset(entry)
            return item(self._tab, self._tab.Vector(at) + j * size) if at else absent

        def length(self: Any) -> int:
            at = self._tab.Offset(entry)
            return self._tab.VectorLen(at) if at else 0

        def unpacked(reader: Any) -> Any:
            return unpack(reader) if reader._tab.Offset(entry) else None

        self.methods |= {f"{method}Length": length, f"{method}IsNone": lambda self: self._tab.Offset(entry) == 0}
        _names[f"{self.name}Start{method}Vector"] = lambda builder, numElems: builder.StartVector(size, numElems, size)
        self.add_at_offset(field, read, unpacked, pack)


def _spellings(name: str) -> tuple[str, str]:
    """Return a field's name as generated methods have it, and as attributes have it."""
    method = "".join(part[:1].upper() + part[1:] for part in name.split("_"))
    return method, method[:1].lower() + method[1:]


def _entry(field: Field) -> int:
    """Return where a table's vtable says where the field lies."""
    return 4 + 2 * field.id


def _made(name: str, bases: tuple[type, ...], members: dict[str, Any]) -> Any:
    return type(name, bases, {"__module__": __name__, **members})


def _define(cls: type[Table]) -> None:
    """Make the classes and functions of a table; those of the tables in it are there by the time that they are used."""
    name, parts = cls.__name__, _Parts(cls.__name__)
    fields = [field for field in (*cls.fields, *_further(name)) if (name, field.name) not in _GONE]
    slots = max((field.id + 1 for field in (*cls.fields, *fields)), default=0)
    for field in fields:
        _KINDS[field.kind](parts, field)
    reader = _made(name, (_Reader,), {"__slots__": (), **parts.methods})
    setattr(reader, f"GetRootAs{name}", reader.GetRootAs)
    setattr(reader, f"{name}BufferHasIdentifier", staticmethod(_has_identifier))
    made = {"_reader": reader, "_defaults": parts.defaults, "_unpacks": parts.unpacks, "_packs": parts.packs, "_slots": slots}
    _names[name], _names[f"{name}T"] = reader, _made(f"{name}T", (_Object,), made)
    _names[f"{name}Start"], _names[f"{name}End"] = lambda builder: builder.StartObject(slots), lambda builder: builder.EndObject()


def _has_identifier(buf: Any, offset: int, size_prefixed: bool = False) -> bool:
    """Return whether bytes say that they are a model."""
    return bool(util.BufferHasIdentifier(buf, offset, b"TFL3", size_prefixed))


def _further(name: str) -> list[Field]:
    """Return a table's fields that oplet's own tables have not."""
    found = []
    for field, slot, element in _FURTHER.get(name, ()):
        made = Field(slot, "vector", number=element)
        made.name = field
        found.append(made)
    return found


def _scalar(parts: _Parts, field: Field) -> None:
    default = field.default if field.number in ("float32", "bool") else int(field.default)
    _number(parts, field.name, field.id, field.number, default)


def _number(parts: _Parts, name: str, slot: int, number: str, default: Any) -> None:
    flags, entry, is_bool = _FLAGS[number], 4 + 2 * slot, number == "bool"
    prepend = f"Prepend{number.capitalize()}Slot"

    def read(self: Any) -> Any:
        at = self._tab.Offset(entry)
        value = self._tab.Get(flags, at + self._tab.Pos) if at else default
        return bool(value) if is_bool else value

    def write(builder: Any, value: Any) -> None:
        getattr(builder, prepend)(slot, value, default)

    parts.add(name, read, default, read, lambda value, builder: lambda: write(builder, value), write)


def _string(parts: _Parts, field: Field) -> None:
    entry = _entry(field)

    def read(self: Any) -> Any:
        at = self._tab.Offset(entry)
        return self._tab.String(at + self._tab.Pos) if at else None

    parts.add_at_offset(field, read, read, lambda builder, value: builder.CreateString(value))


def _table(parts: _Parts, field: Field) -> None:
    entry, inner = _entry(field), _inner(field)

    def read(self: Any) -> Any:
        at = self._tab.Offset(entry)
        return _reader_at(inner, self._tab, at + self._tab.Pos) if at else None

    def unpack(reader: Any) -> Any:
        found = read(reader)
        return None if found is None else _names[f"{inner}T"].InitFromObj(found)

    parts.add_at_offset(field, read, unpack, lambda builder, value: value.Pack(builder))


def _union(parts: _Parts, field: Field) -> None:
    """Add a union: the number of its member, and the member."""
    kind, entry = f"{field.name}_type", _entry(field)
    _number(parts, kind, field.id - 1, "uint8", 0)
    number_of = parts.methods[_spellings(kind)[0]]
    union = next(name for name, members in _UNIONS.items() if members is field.members)

    def read(self: Any) -> Any:
        at = self._tab.Offset(entry)
        if not at:
            return None
        found = table.Table(bytearray(), 0)
        self._tab.Union(found, at)
        return found

    def unpack(reader: Any) -> Any:
        return _names[f"{union}Creator"](number_of(reader), read(reader))

    parts.add_at_offset(field, read, unpack, lambda builder, value: value.Pack(builder))


def _vector(parts: _Parts, field: Field) -> None:
    flags, entry, size = _FLAGS[field.number], _entry(field), field.dtype.itemsize
    prepend = f"Prepend{field.number.capitalize()}"

    def as_numpy(self: Any) -> Any:
        at = self._tab.Offset(entry)
        return self._tab.GetVectorAsNumpy(flags, at) if at else 0

    def pack(builder: Any, value: Any) -> Any:
        if type(value) is np.ndarray:
            return builder.CreateNumpyVector(value)
        builder.StartVector(size, len(value), size)
        add = getattr(builder, prepend)
        for each in reversed(value):
            add(each)
        return builder.EndVector()

    parts.methods[f"{_spellings(field.name)[0]}AsNumpy"] = as_numpy
    parts.add_vector(field, size, lambda its, pos: its.Get(flags, pos), 0, as_numpy, pack)


def _tables(parts: _Parts, field: Field) -> None:
    inner, entry = _inner(field), _entry(field)

    def unpack(reader: Any) -> list[Any]:
        make, its = _names[f"{inner}T"].InitFromObj, reader._tab
        at = its.Offset(entry)
        first = its.Vector(at)
        return [make(_reader_at(inner, its, first + 4 * j)) for j in range(its.VectorLen(at))]

    def pack(builder: Any, value: Any) -> Any:
        offsets = [each.Pack(builder) for each in value]
        builder.StartVector(4, len(offsets), 4)
        for each in reversed(offsets):
            builder.PrependUOffsetTRelative(each)
        return builder.EndVector()

    parts.add_vector(field, 4, lambda its, pos: _reader_at(inner, its, pos), None, unpack, pack)


def _inner(field: Field) -> str:
    """Return the name of the table that a field holds."""
    return "" if field.table is None else field.table.__name__


def _reader_at(name: str, its: Any, pos: int) -> Any:
    """Return the reader of the table to which there is an offset at a position."""
    found = _names[name]()
    found.Init(its.Bytes, its.Indirect(pos))
    return found


def _creator(members: Mapping[int, type[Table]]) -> Callable[[int, Any], Any]:
    """Return the function that makes the object of a union's member."""

    def make(unionType: int, table: Any) -> Any:
        if not hasattr(table, "Pos") or unionType not in members:
            return None
        return _names[f"{members[unionType].__name__}T"].InitFromBuf(table.Bytes, table.Pos)

    return make


_KINDS: dict[str, Callable[[_Parts, Field], None]] = {
    "scalar": _scalar,
    "string": _string,
    "table": _table,
    "union": _union,
    "vector": _vector,
    "tables": _tables,
}

#: The module's names: the makers' helpers begin with an underscore, what they make does not.
_names: dict[str, Any] = globals()


def _define_all() -> list[str]:
    before = set(_names)
    for each in vars(enums).values():
        if isinstance(each, type) and issubclass(each, IntEnum) and each.__members__:
            _names[each.__name__] = _made(each.__name__, (), {name: int(value) for name, value in each.__members__.items()})
    for name, union in _UNIONS.items():
        _names[name] = _made(name, (), {"NONE": 0, **{member.__name__: number for number, member in union.items()}})
        _names[f"{name}Creator"] = _creator(union)
    found = [each for module in (tables, options, stablehlo_options) for each in vars(module).values() if isinstance(each, type)]
    for cls in dict.fromkeys(found):
        if issubclass(cls, Table) and cls is not Table:
            _define(cls)
    return sorted(set(_names) - before)


__all__ = _define_all()
