"""Verification of options tables: fields of an enumeration have one of its members."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from oplet.schema.table import Table

__all__ = ["unknown_member"]

_ENUMS: dict[type[Table], tuple[tuple[str, type[IntEnum]], ...]] = {}


def unknown_member(options: Table) -> str | None:
    """Describe the first field of a node's options whose number its enumeration does not have; None if there is none."""
    cls: Any = type(options)
    for name, known in _enums(cls):
        value = getattr(options, name)
        if type(value) is int:  # a known number is decoded to a member
            return (
                f"has {cls.__name__} with {name} {value}, which is not one of {known.__name__}; this schema knows "
                f"{', '.join(f'{int(member)} ({member.name})' for member in known)}."
            )
    return None


def _enums(cls: type[Table]) -> tuple[tuple[str, type[IntEnum]], ...]:
    """Return the fields of an options table that are enumerations, with their types."""
    enums = _ENUMS.get(cls)
    if enums is None:
        enums = tuple((field.name, field.enum) for field in cls.fields if field.kind == "scalar" and field.enum is not None)
        _ENUMS[cls] = enums
    return enums
