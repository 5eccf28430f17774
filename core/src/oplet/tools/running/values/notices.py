"""What was done to a value on its way into a model, told to whoever gave it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from oplet.texts import LONGEST, plain

__all__ = ["Notice", "Tell", "warn"]


@dataclass(frozen=True)
class Notice:
    """Something that was done to an input's value.

    Attributes:
        kind: "picture" (read, resized, scaled), "clamped" (values beyond what a quantized tensor holds) or "whole numbers" (JSON
            integers that were taken as real values of a quantized tensor).
        input: the input's name.
        text: what was done, without a full stop.
        facts: the same for programs, as JSON has it.
    """

    kind: str
    input: str
    text: str
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"input '{self.input}': {self.text}"

    def as_dict(self) -> dict[str, Any]:
        """The same for JSON."""
        return {"kind": self.kind, "text": self.text, **self.facts}


#: Is called with each notice.
Tell = Callable[[Notice], None]


def warn(notice: Notice) -> None:
    """Tell by a Python warning, but for what became of pictures, which `oplet.tools.running.pictures.load_picture` documents."""
    if notice.kind != "picture":
        warnings.warn(plain(str(notice), LONGEST), stacklevel=2)
