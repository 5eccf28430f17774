"""Lenient reader of custom options, as LiteRT's C++ kernels read them."""

from __future__ import annotations

import math
from typing import Any

from oplet import Node, ensure

__all__ = ["CustomOptions"]


class CustomOptions:
    """A reader of a node's FlexBuffers options that is lenient as LiteRT's is: missing values are zero, numbers are converted."""

    def __init__(self, node: Node) -> None:
        self._map: dict[str, Any] = node.custom_map()

    def has(self, key: str) -> bool:
        """Return whether the option is stored."""
        return self._map.get(key) is not None

    def real(self, key: str) -> float:
        """Return the value as a float; 0.0 if it is missing."""
        value = self._map.get(key)
        if value is None:
            return 0.0
        ensure(isinstance(value, (bool, int, float)), f"the custom option {key} is {value!r}, not a number.")
        return float(value)

    def integer(self, key: str) -> int:
        """Return the value as an int, truncated; 0 if it is missing."""
        value = self.real(key)
        ensure(math.isfinite(value), f"the custom option {key} is {value}, not a whole number.")
        return int(value)

    def boolean(self, key: str) -> bool:
        """Return whether the option is stored and not zero."""
        return bool(self.real(key))
