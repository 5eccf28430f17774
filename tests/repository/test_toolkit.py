"""`oplet.toolkit`: its names are there, told, used, and imported one by one; and nobody reaches past them into objects of the core."""

from __future__ import annotations

import ast
import functools
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripts.import_graph import modules
from scripts.syntax import dotted, nodes, parsed
from tests.children import run_child
from tests.places import ROOT

from oplet import toolkit
from oplet.toolkit import __all__ as NAMES

CORE = ROOT / "core" / "src" / "oplet"
USERS = [
    path
    for name in ("predictor", "compiled_model", "lm", "testing", "tools", "build")
    for path in (ROOT / "plugins" / name / "src").rglob("*.py")
]


@functools.cache
def of_core() -> dict[str, Path]:
    return modules(CORE)


def told(name: str) -> str:
    """What the source says of a name: a docstring, or the comment before it that begins with "#:"."""
    home, known = toolkit._HOMES[name], of_core()
    if f"{home}.{name}" in known:
        return ast.get_docstring(parsed(known[f"{home}.{name}"])) or ""
    lines = known[home].read_text("utf-8").splitlines()
    for node in parsed(known[home]).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name:
            return ast.get_docstring(node) or ""
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        if name in map(ast.unparse, targets):
            comment = list(itertools.takewhile(lambda line: line.startswith("#"), reversed(lines[: node.lineno - 1])))
            return comment[-1] if comment and comment[-1].startswith("#:") else ""
    return ""


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_the_toolkit_is_there_and_told(name: str) -> None:
    assert getattr(toolkit, name) is not None
    assert len(told(name)) > 15, f"{toolkit._HOMES[name]} says nothing of {name}"


def imported(path: Path, module: str) -> Iterator[str]:
    for node in nodes(parsed(path), ast.ImportFrom):
        if node.module == module:
            yield from (alias.name for alias in node.names)


def test_each_name_of_the_toolkit_is_used_by_a_package_and_no_other_is() -> None:
    assert {name for path in USERS for name in imported(path, "oplet.toolkit")} == set(NAMES)


def test_what_oplet_has_is_not_in_the_toolkit_too() -> None:
    import oplet

    assert not set(NAMES) & set(oplet.__all__)


def modules_after(code: str) -> set[str]:
    return set(run_child([sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules)"]).stdout.split())


def test_running_a_model_does_not_import_the_toolkit() -> None:
    assert not modules_after("from oplet import Interpreter") & {"oplet.toolkit", "oplet.access"}


def test_a_name_of_the_toolkit_imports_what_its_module_imports_and_nothing_else() -> None:
    alone = modules_after("from oplet.plugins.engine_choice import is_auto")
    assert modules_after("from oplet.toolkit import is_auto") - alone == {"oplet.toolkit"}


def test_a_name_that_the_toolkit_has_not_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'oplet.toolkit' has no attribute 'absent'"):
        toolkit.absent  # type: ignore[attr-defined]  # noqa: B018


#: Names of objects that are not the core's, though the core has such names too: of named tuples, and of oplet_predictor's `RunsItems`.
OTHERS = {"_asdict", "_fields", "_make", "_replace", "_give", "_take"}


def private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def defined(tree: ast.Module) -> Iterator[str]:
    """The private names that classes of a module give their objects."""
    yield from (node.name for node in nodes(tree, ast.FunctionDef, ast.AsyncFunctionDef))
    for node in nodes(tree, ast.Attribute):
        if isinstance(node.ctx, ast.Store) and dotted(node.value) in ("self", "cls"):
            yield node.attr
    for room in nodes(tree, ast.ClassDef):
        for each in room.body:
            targets = each.targets if isinstance(each, ast.Assign) else [each.target] if isinstance(each, ast.AnnAssign) else []
            yield from map(ast.unparse, targets)


@functools.cache
def of_the_core() -> frozenset[str]:
    return frozenset(name for path in CORE.rglob("*.py") for name in defined(parsed(path)) if private(name))


def reaches(tree: ast.Module) -> Iterator[str]:
    """Accesses to private attributes that objects of the core have and none of this module's has."""
    foreign = of_the_core() - OTHERS - set(defined(tree))
    for taken in nodes(tree, ast.ImportFrom):
        if (taken.module or "").partition(".")[0] == "oplet":
            yield from (f"line {taken.lineno}: {alias.name}" for alias in taken.names if private(alias.name))
    for node in nodes(tree, ast.Attribute, ast.Call):
        name, of = "", node
        if isinstance(node, ast.Attribute):
            name, of = node.attr, node.value
        elif dotted(node.func) in ("getattr", "setattr", "hasattr") and len(node.args) > 1:
            name, of = getattr(node.args[1], "value", ""), node.args[0]
        if name in foreign and dotted(of) not in ("self", "cls"):
            yield f"line {node.lineno}: {ast.unparse(of)}.{name}"


@pytest.mark.parametrize("path", USERS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_tool_touches_private_attributes_of_the_core_s_objects(path: Path) -> None:
    found = list(reaches(parsed(path)))
    assert not found, f"{found}: oplet.toolkit has public names, such as SubgraphRunner"


@pytest.mark.parametrize(
    "code",
    [
        "interpreter._runtime.session.profiler = None",
        "def run(opened):\n    return opened.interpreter._subgraphs[0]",
        "interpreter._runtime.loaded.shares_plans = False",
        "getattr(interpreter, '_model')",
        "from oplet.texts import _without_middle",
        "class Own:\n    def __init__(self):\n        self._other = 1\n    def peek(self, model):\n        return model._mapped",
    ],
)
def test_a_reach_into_the_core_is_found(code: str) -> None:
    assert list(reaches(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    [
        "class Own:\n    def __init__(self, model):\n        self._model = model\n    def same(self, other):\n        return other._model",
        "found._replace(seconds=0.0)",
        "self._session",
        "interpreter.model",
    ],
)
def test_what_is_a_module_s_own_is_no_reach_into_the_core(code: str) -> None:
    assert not list(reaches(ast.parse(code)))
