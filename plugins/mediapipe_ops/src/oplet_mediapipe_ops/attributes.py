"""Reading the FlexBuffers maps that MediaPipe's transform ops have as custom options."""

from __future__ import annotations

import math
from typing import Any

from oplet import ensure

__all__ = ["integer", "integers", "number"]


def integer(options: dict[str, Any], key: str, *, least: int, default: int | None = None) -> int:
    """The integer under `key`, which must not be below `least`."""
    value: Any = options.get(key, default)
    ensure(
        _is_whole(value) and int(value) >= least,
        f"the option '{key}' is {_shown(value)}; it must be an integer of {least} or more.",
    )
    return int(value)


def number(options: dict[str, Any], key: str, *, default: float | None = None) -> float:
    """The finite number under `key`."""
    value: Any = options.get(key, default)
    ensure(
        isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value),
        f"the option '{key}' is {_shown(value)}; it must be a finite number.",
    )
    return float(value)


def integers(options: dict[str, Any], key: str, *, least: int, count: int = 0) -> list[int]:
    """The integers under `key`, none below `least`: `count` of them, or any number but none."""
    value: Any = options.get(key)
    ensure(
        isinstance(value, list) and (len(value) == count if count else value),
        f"the option '{key}' is {_shown(value)}; it must be a list of {count or 'one or more'} integers.",
    )
    for item in value:
        ensure(
            _is_whole(item) and int(item) >= least,
            f"the option '{key}' holds {_shown(item)}; its values must be integers of {least} or more.",
        )
    return [int(item) for item in value]


def _is_whole(value: Any) -> bool:
    return value.is_integer() if isinstance(value, float) else isinstance(value, int) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    return "missing" if value is None else f"{value!r:.60}"
