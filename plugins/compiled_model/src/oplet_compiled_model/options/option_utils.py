"""The form in which LiteRT hands options on: numbers, of which -1 stands for None."""

from __future__ import annotations

import dataclasses
from typing import Any

__all__ = ["flat_fields"]


def flat_fields(prefix: str, options: Any) -> dict[str, Any]:
    """Return the fields of a dataclass of options by prefix and name: members of enumerations and flags as numbers, -1 for None."""
    values = ((field.name, getattr(options, field.name)) for field in dataclasses.fields(options))
    return {prefix + name: -1 if value is None else int(value) if isinstance(value, int) else value for name, value in values}
