"""Text from files, made safe to print: names in a model are chosen by whoever made it."""

from __future__ import annotations

from oplet.texts import one_line, plain

__all__ = ["one_line", "plain"]
