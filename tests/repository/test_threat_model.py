"""What docs/reliability.md says of caches, the environment, the network and code that is read, held against the source."""

from __future__ import annotations

import ast
import json
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripts.syntax import dotted, nodes, parsed
from tests.places import ROOT

import oplet
from oplet.model.files.cache_folder import FOLDER_VARIABLE
from oplet_tools.tuning import choice_cache

PAGE = (ROOT / "docs" / "reliability.md").read_text("utf-8")
CORE = Path(oplet.__file__).parent
SHIPPED = sorted([*CORE.rglob("*.py"), *(ROOT / "plugins").glob("*/src/**/*.py")])

#: Modules that open connections, or read what runs code.
NETWORK = {
    "socket",
    "ssl",
    "http",
    "urllib",
    "ftplib",
    "smtplib",
    "xmlrpc",
    "socketserver",
    "requests",
    "httpx",
    "aiohttp",
    "urllib3",
}
CODE = {"pickle", "_pickle", "shelve", "dill", "cloudpickle", "joblib", "yaml", "dbm", "marshal"}


def modules(tree: ast.AST) -> Iterator[str]:
    """The first parts of what a module imports, wherever in it; not `urllib.parse`, which only splits addresses."""
    for node in nodes(tree, ast.Import, ast.ImportFrom):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        yield from (name.partition(".")[0] for name in names if name != "urllib.parse")


def variables(tree: ast.Module) -> Iterator[str]:
    """The environment variables that a module reads; "?" for what is computed."""
    constants = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in nodes(tree, ast.Call, ast.Subscript):
        key: ast.expr | None = None
        if isinstance(node, ast.Call) and dotted(node.func) in ("os.environ.get", "os.getenv", "environ.get", "variables.get"):
            key = node.args[0]
        elif isinstance(node, ast.Subscript) and dotted(node.value) == "os.environ":
            key = node.slice
        if isinstance(key, ast.Constant):
            yield str(key.value)
        elif isinstance(key, ast.Name):
            yield str(constants.get(key.id, "?" + key.id))


def documented(section: str) -> str:
    return PAGE.split(f"\n### {section}\n")[1].split("\n### ")[0].split("\n## ")[0]


def test_nothing_that_is_shipped_opens_a_connection() -> None:
    found = {str(path): sorted(set(modules(parsed(path))) & NETWORK) for path in SHIPPED}
    assert {path: names for path, names in found.items() if names} == {}


def test_pages_that_are_written_load_nothing_from_elsewhere() -> None:
    templates = list((ROOT / "plugins" / "tools" / "src").rglob("templates/**/*.html"))
    assert len(templates) > 1
    assert not list(CORE.rglob("*.html"))
    for template in templates:
        assert not re.search(r"""(src|href)\s*=|url\(|@import|https?://|fetch\(|XMLHttp""", template.read_text("utf-8")), template


def test_nothing_that_is_shipped_reads_what_runs_code() -> None:
    found = {"/".join(path.parts[path.parts.index("src") + 1 :]): sorted(set(modules(parsed(path))) & CODE) for path in SHIPPED}
    # It compiles oplet's own modules in a child, and writes them into a program.
    assert found.pop("oplet_build/building/packing/bytecode.py") == ["marshal"]
    # It reads what a process of its own wrote into a pipe that nobody else has.
    assert found.pop("oplet_predictor/worker_process.py") == ["pickle"]
    # It reads files that nobody else may have written, and which decide what compiled kernels do.
    assert found.pop("oplet/runtime/memory/plan_files.py") == ["marshal"]
    assert {path: names for path, names in found.items() if names} == {}
    calling = {
        (path.name, dotted(node.func))
        for path in SHIPPED
        for node in nodes(parsed(path), ast.Call)
        if dotted(node.func) in ("eval", "exec", "np.load", "numpy.load")
    }
    assert calling == {("code_points.py", "np.load")}  # a table of the package itself, which is installed beside its code


@pytest.mark.parametrize(
    "code",
    ["import urllib.request", "from urllib import request", "def f():\n    from socket import socket", "import http.client as c"],
)
def test_whatever_opens_a_connection_is_found(code: str) -> None:
    assert set(modules(ast.parse(code))) & NETWORK


def test_the_environment_variables_that_are_read_are_documented() -> None:
    section = documented("Environment variables")
    read = {name for path in SHIPPED for name in variables(parsed(path))}
    assert read >= {"OPLET_CACHE_DIR", "XDG_CACHE_HOME", "PYTHONPATH"}
    imported = {
        "?PREFER_VARIABLE": "OPLET_PREFER",
        "?LOAD_VARIABLE": "OPLET_PLUGINS",
        "?DISABLE_VARIABLE": "OPLET_DISABLE_PLUGINS",
    }
    names = {imported.get(name, name) for name in read}
    assert {name for name in names if f"`{name}`" not in section} == set()
    named = {name for path in SHIPPED for name in re.findall(r'"(OPLET_[A-Z_]+)"', path.read_text("utf-8"))}
    assert {name for name in named - {"OPLET_API", "OPLET_TIER"} if f"`{name}`" not in section} == set()
    assert set(re.findall(r"`([A-Z]+_NUM_THREADS|[A-Z]+_MAXIMUM_THREADS)`", section)) == set(
        re.findall(
            r'"([A-Z]+_(?:NUM|MAXIMUM)_THREADS)"',
            (ROOT / "plugins/tools/src/oplet_tools/benchmarking/blas_threads.py").read_text("utf-8"),
        )
    )


#: The build of compiled kernels, which no wheel holds, and the module by which it resolves what kernels call.
BUILD = ("oplet_compiled_ops/compiling/", "oplet_compiled_ops/library/lazy.py")


def shipped_alone() -> dict[str, Path]:
    """The modules that wheels hold and that run while a model does, by their paths in the wheel."""
    found = {"/".join(path.parts[path.parts.index("src") + 1 :]): path for path in SHIPPED}
    return {name: path for name, path in found.items() if not name.startswith(BUILD)}


def test_nothing_that_is_shipped_makes_memory_executable_or_compiles() -> None:
    calls = re.compile(r"\b(mprotect|PROT_EXEC|MAP_JIT|VirtualAlloc\w*|VirtualProtect\w*|memfd_create)\b")
    found = {name: set(calls.findall(path.read_text("utf-8"))) for name, path in shipped_alone().items()}
    # It has the loader open an empty library, by which the user's is bound.
    assert found.pop("oplet_native_ops/shim/opening.py") == {"memfd_create"}
    assert {name: calls for name, calls in found.items() if calls} == {}
    imports = {name: set(modules(parsed(path))) for name, path in shipped_alone().items()}
    assert {name for name, found in imports.items() if found & {"numba", "llvmlite", "cffi", "ziglang", "setuptools"}} == set()


def test_few_modules_open_libraries() -> None:
    calls = {
        name: {ast.unparse(node) for node in nodes(parsed(path), ast.Call) if is_opening(node)}
        for name, path in shipped_alone().items()
    }
    found = {name: opened for name, opened in calls.items() if opened}
    # BLAS is found among the libraries that the process has already; the others call the C library.
    assert found.pop("oplet/runtime/blas.py") == {"ctypes.CDLL(path)"}
    assert found.pop("oplet/runtime/workers.py") == {"ctypes.PyDLL(None)"}
    assert found.pop("oplet_serve/doors/spare_memory.py") == {"ctypes.CDLL(None)"}
    assert found.pop("oplet_compiled_ops/library/opening.py") == {
        "ctypes.CDLL(_path('probe'))",
        "ctypes.CDLL(_path(level))",
        "ctypes.CDLL(None)",
    }
    # LiteRT's own library, once more, and those that the user names.
    assert found.pop("oplet_litert_delegate/library.py") == {"ctypes.PyDLL(self._path)"}
    assert set(found) == {"oplet_native_ops/shim/opening.py", "oplet_native_ops/shim/library.py"}


def is_opening(node: ast.Call) -> bool:
    """Whether a call opens a shared library."""
    return dotted(node.func).rpartition(".")[2] in (
        "CDLL",
        "PyDLL",
        "WinDLL",
        "OleDLL",
        "LoadLibrary",
    )


def test_every_test_that_the_page_names_is_there() -> None:
    paths = re.findall(r"`((?:core|tests|plugins|fuzz)/[\w/.-]+)`", PAGE)
    assert len(paths) > 20
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_every_row_of_the_threat_model_leads_to_its_section() -> None:
    rows = re.findall(r"^\| \[[^]]+\]\(#([\w-]+)\)", PAGE, re.MULTILINE)
    heads = {re.sub(r"[^\w -]", "", head).lower().replace(" ", "-") for head in re.findall(r"^#+ (.+)$", PAGE, re.MULTILINE)}
    assert len(rows) > 10
    assert set(rows) <= heads
    assert set(re.findall(r"\]\(#([\w-]+)\)", PAGE)) <= heads


@pytest.mark.skipif(os.name == "nt", reason="folders have no such permissions there")
def test_a_new_cache_folder_is_the_user_s_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "new"))
    path = Path(choice_cache.store_choice({"a": 1}, {"choice": 2}))
    assert choice_cache.load_choice({"a": 1}) == {"key": {"a": 1}, "choice": 2}
    assert [stat.S_IMODE(folder.stat().st_mode) & 0o077 for folder in path.parents[:2]] == [0, 0]


@pytest.mark.skipif(os.name == "nt" or os.uname().sysname == "Darwin", reason="other places are asked there")
@pytest.mark.parametrize("variable", ["", "cache", "./x"])
def test_without_a_folder_of_the_user_s_own_nothing_is_read_from_the_current_one(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", variable)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as where nobody knows the user's home
    key = {"a": variable}  # a process remembers what it could not store
    name = Path(choice_cache.choice_file(key)).name or "x.json"
    for folder in ("cache", "x", "~/.cache"):
        planted = tmp_path / folder / "oplet" / "choices"
        planted.mkdir(parents=True)
        (planted / name).write_text(json.dumps({"key": key, "choice": "theirs"}))
    before = sorted(tmp_path.rglob("*"))
    assert choice_cache.load_choice(key) is None
    assert choice_cache.store_choice(key, {}) == ""
    assert "OPLET_CACHE_DIR" in caplog.text
    assert sorted(tmp_path.rglob("*")) == before
