"""The page of public names has each of them, and each is used by a package, an example or a test."""

from __future__ import annotations

import ast
import importlib
import re

import pytest
from scripts.stubs import COMPANIONS
from scripts.syntax import nodes, parsed
from tests.places import ROOT

import oplet
from oplet.companions import KNOWN

PAGE = (ROOT / "docs/public-names.md").read_text("utf-8")


def names_of_page() -> set[str]:
    """Return the names in the first columns of the page's tables."""
    rows = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def test_the_page_has_each_public_name_and_no_other() -> None:
    assert names_of_page() == {*oplet.__all__, *COMPANIONS} - {"__version__"}


@pytest.mark.parametrize(("name", "home"), COMPANIONS.items())
def test_a_name_that_another_package_brings_is_the_one_of_its_stub_and_known_where_that_is_absent(name: str, home: str) -> None:
    assert getattr(oplet, name) is getattr(importlib.import_module(home), name)
    assert KNOWN[name].replace("-", "_") == home.partition(".")[0]


def test_each_public_name_is_used_somewhere() -> None:
    used = set()
    for folder in ("core/tests", "plugins", "tests", "benchmarks", "examples"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text("utf-8")
            used |= set(re.findall(r"\boplet\.(\w+)", text))  # a class that keeps to a protocol says so in its docstring
            if re.search(r"\bfrom\s+oplet\s+import\b", text):
                imports = (node for node in nodes(parsed(path), ast.ImportFrom) if node.module == "oplet")
                used |= {alias.name for node in imports for alias in node.names}
    assert {*oplet.__all__} - {"__version__"} <= used
