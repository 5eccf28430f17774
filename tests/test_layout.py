"""The shape of the house: floors import downwards only, and nothing is imported that a model does not need."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CORE = ROOT / "core" / "src" / "oplet"
#: Ground floor first; a module imports from its own floor and those before it.
TOWER = (
    "texts",
    "errors",
    "schema",
    "ops",
    "kernels",
    "versions",
    "delegates",
    "model",
    "plugins",
    "runtime",
    "tuning",
    "testing",
    "tools",
    "cli",
)


def imports(path: Path, top_level_only: bool = False) -> Iterator[str]:
    """The modules that a file imports when it runs; imports for type checkers only do not count."""
    tree = ast.parse(path.read_text())
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            skipped.update(id(inner) for inner in ast.walk(node))
        if top_level_only and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            skipped.update(id(inner) for inner in ast.walk(node))
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def floor(module: str) -> int | None:
    parts = module.split(".")
    return TOWER.index(parts[1]) if parts[0] == "oplet" and len(parts) > 1 and parts[1] in TOWER else None


@pytest.mark.parametrize("path", sorted(CORE.rglob("*.py")), ids=lambda path: str(path.relative_to(CORE)))
def test_a_module_of_the_core_imports_only_its_own_floor_and_those_below(path: Path) -> None:
    own = floor("oplet." + path.relative_to(CORE).with_suffix("").parts[0])
    for module in imports(path, top_level_only=True):
        assert not module.startswith("oplet_"), f"the core imports the plugin {module}"
        there = floor(module)
        assert own is None or there is None or there <= own, f"{path.name} imports {module}, which is a floor above"


def test_there_are_no_import_circles() -> None:
    graph = {}
    for path in CORE.rglob("*.py"):
        name = "oplet." + ".".join(path.relative_to(CORE).with_suffix("").parts).removesuffix(".__init__")
        graph[name] = {m for m in imports(path, top_level_only=True) if m.startswith("oplet.")}
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, f"import circle: {' -> '.join((*path, name))}"
        if name in graph and name not in done:
            for other in graph[name]:
                visit(other, (*path, name))
            done.add(name)

    for name in graph:
        visit(name, ())


@pytest.mark.parametrize(
    "package",
    [
        "builtin_ops",
        "atan_op",
        "example_delegate",
        "litert_delegate",
        "mediapipe_ops",
        "numba_ops",
        "openvino_delegate",
        "signal_ops",
    ],
)
def test_a_plugin_imports_the_core_s_public_names_only(package: str) -> None:
    public = {"oplet", "oplet.errors", "oplet.testing", "oplet.schema"}
    for path in (ROOT / "plugins" / package / "src").rglob("*.py"):
        for module in imports(path):
            if module.startswith("oplet.") and not module.startswith(("oplet.schema.", "oplet.kernels.")):
                assert module in public, f"{path} imports {module}"


def test_only_compiled_kernels_wrap_the_builtin_ones() -> None:
    """numba_ops falls back to registrations of builtin_ops, on which it depends; every other package stands alone."""
    for path in (ROOT / "plugins").glob("*/src/**/*.py"):
        package = path.relative_to(ROOT / "plugins").parts[0]
        if package not in ("builtin_ops", "numba_ops"):
            assert not [m for m in imports(path) if m.startswith("oplet_builtin_ops")], path


def modules_after(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_importing_oplet_imports_no_plugin_and_no_metadata_reader() -> None:
    loaded = modules_after("from oplet import Interpreter")
    assert not {m for m in loaded if m.startswith("oplet_")}
    assert not loaded & {"importlib_metadata", "pluggy", "ml_dtypes", "typer", "rich", "PIL"}


def test_a_model_imports_only_the_kernels_that_it_needs() -> None:
    code = """
import numpy as np
from oplet import Interpreter
from oplet.testing import one_op_model
from oplet.testing.one_op import Spec
Interpreter(model_content=one_op_model("TRANSPOSE", [Spec("float32", [2, 3]), np.array([1, 0], "int32")], [Spec("float32", [3, 2])]))
"""
    loaded = {m for m in modules_after(code) if m.startswith("oplet_builtin_ops.ops.")}
    assert loaded == {"oplet_builtin_ops.ops.transpose"}


SHIPPED = [p for d in (CORE, *(ROOT / "plugins").glob("*/src")) for p in d.rglob("*.py")]


def test_shipped_code_has_no_assert_and_prints_nothing() -> None:
    for path in SHIPPED:
        for node in ast.walk(ast.parse(path.read_text())):
            assert not isinstance(node, ast.Assert), f"{path}:{node.lineno} has an assert, which vanishes under -O"
            printing = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
            assert not printing or "cli" in path.parts, f"{path}:{node.lineno} prints"
