"""The blocks of Python of a page, and running them one after the other, as a reader would."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

__all__ = ["python_blocks", "run_blocks"]


def python_blocks(page: Path) -> Iterator[tuple[int, str]]:
    """Each block with the number of the line before it."""
    text = page.read_text("utf-8")
    for block in re.finditer(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        yield text.count("\n", 0, block.start(1)), block[1]


def run_blocks(page: Path, names: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Run all blocks of a page; returns the names that they bound.

    Args:
        page: the page.
        names: what the page takes as given.
    """
    found: dict[str, Any] = {"__name__": "page", **(names or {})}
    for line, code in python_blocks(page):
        exec(compile("\n" * line + code, str(page), "exec"), found)
    return found
