"""Notices for users of what was done to an input's value."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from oplet.texts import LONGEST, plain

__all__ = ["Notice", "NoticeCallback", "warn"]


@dataclass(frozen=True)
class Notice:
    """A message on something that was done to an input's value."""

    #: "picture" (read, resized, scaled), "clamped" (values beyond the range of a quantized tensor), "whole numbers" (JSON
    #: integers taken as real values of a quantized tensor), "other name" (a file's only value, under another name) or "random"
    #: (no value was given for this input).
    kind: str
    input: str
    text: str  #: What was done, in words, without a full stop.
    facts: Mapping[str, Any] = field(default_factory=dict)  #: The same as data, of JSON types.

    def __str__(self) -> str:
        return f"input '{self.input}': {self.text}"

    def as_dict(self) -> dict[str, Any]:
        """Return the notice as a dictionary, for JSON."""
        return {"kind": self.kind, "text": self.text, **self.facts}


#: A callback that takes each notice.
NoticeCallback = Callable[[Notice], None]


def warn(notice: Notice) -> None:
    """Issue a notice as a Python warning, except for pictures, whose conversion `load_picture` documents."""
    if notice.kind != "picture":
        warnings.warn(plain(str(notice), LONGEST), stacklevel=2)
