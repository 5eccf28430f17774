"""The page of public names has each of them, and each is used by a package, an example or a test."""

from __future__ import annotations

import ast
import re

from tests.places import ROOT

import oplet

PAGE = (ROOT / "docs/public-names.md").read_text("utf-8")


def names_of_page() -> set[str]:
    """Return the names in the first columns of the page's tables."""
    rows = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def test_the_page_has_each_public_name_and_no_other() -> None:
    # Predictor is the one that another package brings.
    assert names_of_page() == {*oplet.__all__, "Predictor"} - {"__version__"}


def test_each_public_name_is_used_somewhere() -> None:
    used = set()
    for folder in ("core/tests", "plugins", "tests", "benchmarks", "examples"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text("utf-8")
            used |= set(re.findall(r"\boplet\.(\w+)", text))  # a class that keeps to a protocol says so in its docstring
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.ImportFrom) and node.module == "oplet":
                    used |= {alias.name for alias in node.names}
    assert {*oplet.__all__} - {"__version__"} <= used
