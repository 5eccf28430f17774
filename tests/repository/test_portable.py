"""Packages name what only some systems have where they ask for it first, and say in which encoding text is, which systems take differently.

What a package does there is run by tests/elsewhere, in a process that has been told that it is on another system.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from scripts.syntax import dotted, nodes, parsed
from tests.elsewhere.names import ATTRIBUTES, MODULES
from tests.places import ROOT

FOLDERS = (ROOT / "core" / "src", *sorted((ROOT / "plugins").glob("*/src")), ROOT / "examples")
FILES = [
    *(path for folder in FOLDERS for path in sorted(folder.rglob("*.py"))),
    *sorted((ROOT / "plugins").glob("*/hatch_build.py")),
]

#: What a function, or a statement of a module, that has asked first contains.
GUARDS = ("hasattr(", "getattr(", "sys.platform", "os.name", "AttributeError", "ImportError", "ModuleNotFoundError")
#: What is reached on Linux alone, and why.
LINUX_ALONE = {
    "plugins/native_ops/src/oplet_native_ops/shim/opening.py": "what opens a library asks for `shim` first, which refuses elsewhere",
    "plugins/compiled_ops/src/oplet_compiled_ops/threads/team.py": "a worker moves where the C library tells processors, and is asked",
    "plugins/serve/src/oplet_serve/doors/spare_memory.py": "asked for where /proc is",
}


def statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """The smallest pieces that may ask for themselves: functions, methods, and what stands in a module or class."""
    for node in tree.body:
        yield from node.body if isinstance(node, ast.ClassDef) else [node]


def on_some_systems(tree: ast.Module) -> list[str]:
    """What a module names that some systems have not, without asking first."""
    found = []
    for piece in statements(tree):
        named = list(on_some(piece))
        if named and not any(guard in ast.unparse(piece) for guard in GUARDS):
            found += named
    return found


def on_some(piece: ast.AST) -> Iterator[str]:
    """What a piece of a module names that some systems have not."""
    for node in ast.walk(piece):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            names = ATTRIBUTES.get(node.module, set())
            if node.module.partition(".")[0] in MODULES:
                yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names if alias.name in names)
        elif isinstance(node, ast.Attribute) and node.attr in ATTRIBUTES.get(dotted(node.value), ()):
            yield dotted(node)


#: Where the mode and the encoding stand among the arguments, of functions and methods that read or write text.
PLACES = {"open": (1, 3), ".open": (0, 2), ".read_text": (None, 0), ".write_text": (None, 1), "NamedTemporaryFile": (0, 2),
          "TemporaryFile": (0, 2), "SpooledTemporaryFile": (1, 3), "fdopen": (1, 3), "TextIOWrapper": (None, 1)}  # fmt: skip
#: They take none, as they say it to both sides.
SAY_IT = {"run_python", "python_process"}


def without_encoding(tree: ast.Module) -> Iterator[str]:
    """Calls in a module that read or write text in the encoding of the system."""
    for node in nodes(tree, ast.Call):
        given = {word.arg: word.value for word in node.keywords}
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if "encoding" in given or name in SAY_IT or None in given:
            continue
        text = given.get("text", given.get("universal_newlines"))
        if isinstance(text, ast.Constant) and text.value:
            yield f"{name}(text=True), line {node.lineno}"
        method = "" if isinstance(node.func, ast.Name) or name not in ("open", "read_text", "write_text") else "."
        if f"{method}{name}" not in PLACES:
            continue
        at, encoding = PLACES[f"{method}{name}"]
        if len(node.args) > encoding:
            continue
        if at is not None:
            is_binary = "Temporary" in name
            mode = given.get("mode", node.args[at] if len(node.args) > at else None)
            if mode is None and method:
                continue  # of an archive, an image or a folder of one's own, or of a path that is read as text below
            word = mode.value if isinstance(mode, ast.Constant) else None if mode is not None else "b" if is_binary else "r"
            if not isinstance(word, str) or "b" in word or not set(word) <= set("rwxat+"):
                continue
        yield f"{name}, line {node.lineno}"


@pytest.mark.parametrize(("source", "found"), [
    ("import fcntl", ["fcntl"]),
    ("def lock():\n    import fcntl", ["fcntl"]),
    ("from pwd import getpwuid", ["pwd"]),
    ("from os import geteuid", ["os.geteuid"]),
    ("import os\nFLAGS = os.O_RDONLY | os.O_NOFOLLOW", ["os.O_NOFOLLOW"]),
    ("import os\nclass A:\n    def f(self):\n        return os.sysconf('SC_PAGE_SIZE')", ["os.sysconf"]),
    ("import os\nFLAGS = getattr(os, 'O_NOFOLLOW', 0)", []),
    ("def lock():\n    try:\n        import fcntl\n    except ImportError:\n        pass", []),
    ("import os\nif hasattr(os, 'fork'):\n    os.fork()", []),
    ("import mine\nmine.fork()", []),
])  # fmt: skip
def test_what_some_systems_have_not_is_seen(source: str, found: list[str]) -> None:
    assert on_some_systems(ast.parse(source)) == found


@pytest.mark.parametrize(("source", "is_wrong"), [
    ("open('a')", True), ("open('a', 'w')", True), ("open('a', mode='r+')", True), ("open('a', 'rb')", False),
    ("open('a', encoding='ascii')", False), ("open('a', 'r', -1, 'ascii')", False), ("path.open('w')", True), ("path.open('wb')", False),
    ("path.open()", False), ("path.read_text()", True), ("path.read_text('utf-8')", False), ("path.write_text('a')", True),
    ("path.write_text('a', 'utf-8')", False), ("run(['a'], text=True)", True), ("run(['a'], text=True, encoding='utf-8')", False),
    ("run_python(['a'], text=True)", False), ("NamedTemporaryFile()", False), ("NamedTemporaryFile('w')", True), ("fdopen(3)", True),
    ("TextIOWrapper(file)", True), ("TextIOWrapper(file, 'utf-8')", False),
])  # fmt: skip
def test_text_in_the_encoding_of_the_system_is_seen(source: str, is_wrong: bool) -> None:
    assert bool(list(without_encoding(ast.parse(source)))) is is_wrong


def test_packages_ask_before_they_use_what_some_systems_have_not() -> None:
    assert len(FILES) > 1000
    found = {path.relative_to(ROOT).as_posix(): names for path in FILES if (names := on_some_systems(parsed(path)))}
    assert {name: names for name, names in found.items() if name not in LINUX_ALONE} == {}
    assert LINUX_ALONE.keys() <= found.keys()


def test_packages_say_in_which_encoding_they_read_and_write_text() -> None:
    found = {path.relative_to(ROOT).as_posix(): calls for path in FILES if (calls := list(without_encoding(parsed(path))))}
    assert found == {}


def test_a_clone_has_the_line_ends_of_the_repository_on_every_system() -> None:
    rules = [line for line in (ROOT / ".gitattributes").read_text("utf-8").splitlines() if not line.startswith("#")]
    assert rules == ["* -text"]
