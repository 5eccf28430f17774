"""The rule that options tables keep by themselves: a field of an enumeration holds one of its members."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from oplet.schema import tables
from oplet.schema.table import Table

__all__ = ["unknown_member"]

_ENUMS: dict[type[Table], dict[str, type[IntEnum]]] = {}


def unknown_member(operator: tables.Operator) -> str | None:
    """What is wrong with the enumerations of a node's options, None if nothing is."""
    for options in (operator.builtin_options, operator.builtin_options_2):
        if options is None:
            continue
        cls: Any = type(options)
        enums = _enums(cls)
        for name, value in options.__dict__.items():
            if type(value) is int and name in enums:  # members decode to members
                known = enums[name]
                return (
                    f"has {cls.__name__} with {name} {value}, which is not one of {known.__name__}; this schema knows "
                    f"{', '.join(f'{int(member)} ({member.name})' for member in known)}."
                )
    return None


def _enums(cls: type[Table]) -> dict[str, type[IntEnum]]:
    known = _ENUMS.get(cls)
    if known is None:
        known = {field.name: field.enum for field in cls.fields if field.kind == "scalar" and field.enum is not None}
        _ENUMS[cls] = known
    return known
