"""Tables of the metadata schema as dictionaries and back, in the form of JSON that flatc and TFLite's MetadataDisplayer write.

Enumerations are names, vectors lists, absent fields are left out, and of a union the field NAME_type has the name of its class.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, TypeVar

import numpy as np

from oplet.errors import ModelError
from oplet.schema.table import Field, Table
from oplet.texts import shown

__all__ = ["from_dict", "to_dict"]

T = TypeVar("T", bound=Table)


def to_dict(table: Table) -> dict[str, Any]:
    """Convert a table to a dictionary for JSON, without fields that are not set."""
    told: dict[str, Any] = {}
    for field in table.fields:
        value = getattr(table, field.name)
        if value is None or (field.kind == "scalar" and value == field.default):
            continue
        if field.kind == "union":
            told[f"{field.name}_type"] = type(value).__name__
        told[field.name] = _plain(value)
    return told


def from_dict(cls: type[T], values: Mapping[str, Any], where: str = "") -> T:
    """Convert a dictionary, as `to_dict` returns it, to a table.

    Args:
        cls: the table's class.
        values: the values by the names of the fields.
        where: the table's name in error messages; "" for the name of its class.

    Raises:
        ModelError: a field does not exist or has a value of another kind.
    """
    where = where or cls.__name__
    if not isinstance(values, Mapping):
        raise ModelError(f"{where} of the metadata is {shown(repr(values))}; give an object with the fields of {cls.__name__}.")
    fields = {field.name: field for field in cls.fields}
    types = {f"{field.name}_type" for field in cls.fields if field.kind == "union"}
    if unknown := values.keys() - fields.keys() - types:
        known = ", ".join([*fields, *sorted(types)]) or "none"
        raise ModelError(f"{where} of the metadata has no field '{shown(str(min(map(str, unknown))))}'; its fields are {known}.")
    made = {}
    for name, value in values.items():
        if name in fields and value is not None:
            made[name] = _value(fields[name], value, f"{where}.{name}", values.get(f"{name}_type"))
    return cls(**made)


def _plain(value: Any) -> Any:
    if isinstance(value, IntEnum):
        return value.name
    if isinstance(value, Table):
        return to_dict(value)
    if isinstance(value, np.ndarray):  # the shortest text that leads back to the same float32
        return [float(str(number)) for number in value] if value.dtype.kind == "f" else value.tolist()
    if isinstance(value, float | np.floating):
        return float(str(np.float32(value)))
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _value(field: Field, value: Any, where: str, member: Any) -> Any:
    if field.kind == "scalar" and field.enum is not None:
        return _member(field.enum, value, where)
    if field.kind == "table":
        return from_dict(field.table or Table, value, where)
    if field.kind == "union":
        classes = {each.__name__: each for each in (field.members or {}).values()}
        if member not in classes:
            raise ModelError(f"{where}_type of the metadata is {shown(repr(member))}; give one of {', '.join(classes)}.")
        return from_dict(classes[member], value, where)
    wanted: Any = {"string": str, "scalar": int | float}.get(field.kind, list)
    if not isinstance(value, wanted) or isinstance(value, bool):
        what = {"string": "a text", "scalar": "a number"}.get(field.kind, "a list")
        raise ModelError(f"{where} of the metadata is {shown(repr(value))}; give {what}.")
    if field.kind == "tables":
        return [from_dict(field.table or Table, item, f"{where}[{place}]") for place, item in enumerate(value)]
    element: Any = str if field.kind == "strings" else int | float
    if isinstance(value, list) and not all(isinstance(item, element) and not isinstance(item, bool) for item in value):
        raise ModelError(
            f"{where} of the metadata is {shown(repr(value))}; give a list of {'texts' if element is str else 'numbers'}."
        )
    return value


def _member(enum: type[IntEnum], value: Any, where: str) -> IntEnum:
    names = {member.name: member for member in enum} | {int(member): member for member in enum}
    if isinstance(value, bool) or not isinstance(value, str | int) or value not in names:
        raise ModelError(f"{where} of the metadata is {shown(repr(value))}; give one of {', '.join(enum.__members__)}.")
    return names[value]
