"""A picture as the value of an input, with the steps of its conversion."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet_tools.running.values.notices import Notice

__all__ = ["Picture"]


@dataclass
class Picture:
    """A picture, converted to the value of an input.

    Attributes:
        pixels: the array for the input.
        raw: whether `pixels` are integers as the input's tensor holds them, not real values.
        area: left, top, right and bottom of the area that was resized to the input, in pixels of the picture after EXIF rotation;
            the part beyond the picture is padding.
        path: the file.
        done: the steps of its conversion, in words.
        facts: the same steps as data, for JSON.
    """

    path: Path
    done: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    pixels: NDArray[Any] = field(default_factory=lambda: np.empty(0))
    raw: bool = False
    area: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)

    def did(self, what: str, **facts: Any) -> None:
        """Record a step of the conversion, in words and as data."""
        self.done.append(what)
        self.facts.update(facts)

    def notice(self, name: str) -> Notice:
        """Return a notice of the steps of the conversion, for the user; `name` is the input's."""
        return Notice("picture", name, f"'{self.path}': {', '.join(self.done)}", {**self.facts, "area": list(self.area)})
