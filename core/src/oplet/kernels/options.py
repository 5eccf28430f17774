"""Options of custom ops as LiteRT reads them: what is missing is zero, and numbers become the type that is asked for."""

from __future__ import annotations

import math
from typing import Any

from oplet import Node, ensure

__all__ = ["CustomOptions"]


class CustomOptions:
    """The options of a node, from its FlexBuffers map."""

    def __init__(self, node: Node) -> None:
        self._map: dict[str, Any] = node.custom_map()

    def has(self, key: str) -> bool:
        """Whether the option is given."""
        return self._map.get(key) is not None

    def real(self, key: str) -> float:
        """A number."""
        value = self._map.get(key)
        if value is None:
            return 0.0
        ensure(isinstance(value, (bool, int, float)), f"the custom option {key} is {value!r}, not a number.")
        return float(value)

    def integer(self, key: str) -> int:
        """A whole number; fractions are cut off."""
        value = self.real(key)
        ensure(math.isfinite(value), f"the custom option {key} is {value}, not a whole number.")
        return int(value)

    def boolean(self, key: str) -> bool:
        """Whether it is given and not zero."""
        return bool(self.real(key))
