"""The form in which LiteRT hands optional values on: -1 stands for None."""

from __future__ import annotations

import enum

__all__ = ["optional_bool_to_int", "optional_enum_to_int"]


def optional_bool_to_int(value: bool | None) -> int:
    """Return 1 for True, 0 for False, and -1 for None."""
    return -1 if value is None else int(bool(value))


def optional_enum_to_int(value: enum.IntEnum | None) -> int:
    """Return the number of an enumeration's member, and -1 for None."""
    return -1 if value is None else int(value)
