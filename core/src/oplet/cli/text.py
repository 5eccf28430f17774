"""Text from files, made safe to print; the functions live with the tools, which builds of `oplet build` take along."""

from __future__ import annotations

from oplet.tools.text import one_line, plain

__all__ = ["one_line", "plain"]
