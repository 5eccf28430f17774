"""Properties are tried on the same values in every clone, and on new and more ones where somebody asks for them."""

from __future__ import annotations

import ast
import os
import sys
from pathlib import Path

from hypothesis import settings
from tests.budgets import examples
from tests.children import run_child
from tests.places import ROOT

#: It writes down what was drawn.
PROPERTY = """
from hypothesis import given, settings, strategies as st
from tests.budgets import examples

@settings(max_examples=examples(20))
@given(st.integers())
def test_drawn(number):
    with open("drawn", "a") as file:
        file.write(f"{number} ")
"""


def drawn(folder: Path, *options: str) -> list[str]:
    """What a property test draws in a process of its own."""
    folder.mkdir()
    (folder / "test_property.py").write_text(PROPERTY)
    (folder / "conftest.py").write_text((ROOT / "conftest.py").read_text("utf-8").replace("pytest_plugins", "_plugins"))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])}
    run_child(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, str(folder)], cwd=folder, env=environment
    )
    return (folder / "drawn").read_text().split()


def test_the_same_values_in_every_clone_and_new_ones_when_asked_for(tmp_path: Path) -> None:
    first, second = drawn(tmp_path / "first"), drawn(tmp_path / "second")
    assert first == second
    assert len(first) == 20
    random = drawn(tmp_path / "random", "--hypothesis-profile=random")
    assert len(random) > 50
    assert random[:20] != first


def test_the_budget_of_a_property_grows_with_the_profile() -> None:
    for path in (*ROOT.glob("plugins/*/tests/**/*.py"), *ROOT.glob("core/tests/**/*.py")):
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text)) if "max_examples" in text else ():
            if isinstance(node, ast.keyword) and node.arg == "max_examples" and isinstance(node.value, ast.Constant):
                assert node.value.value < 10, f"{path}: write examples({node.value.value})"


def test_a_budget_is_a_part_of_what_is_usual() -> None:
    assert examples(100) == settings.default.max_examples
    assert examples(0) == 1
