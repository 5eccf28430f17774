"""No child process, and no command, imports what lies in the current folder or beside a model."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripts.syntax import dotted, nodes, parsed
from tests.places import ROOT

from oplet_build.building import report
from oplet_build.building.packing.bytecode import compiled
from oplet_tools.processes import python_process, run_python

CORE = ROOT / "core" / "src" / "oplet"
#: The build of compiled kernels, which no wheel holds: it compiles in processes, and calls zig.
BUILD = ROOT / "plugins" / "compiled_ops" / "src" / "oplet_compiled_ops" / "compiling"
SHIPPED = [
    path
    for folder in (CORE, *(ROOT / "plugins").glob("*/src"), ROOT / "benchmarks", ROOT / "fuzz", ROOT / "examples")
    for path in sorted(folder.rglob("*.py"))
    if not path.is_relative_to(BUILD)
]

#: Modules whose business is to start processes or to run files as Python.
STARTERS = {"subprocess", "multiprocessing", "pty", "runpy", "concurrent.futures.process", "_posixsubprocess"}
CALLS = ("exec", "spawn", "posix_spawn", "fork", "popen", "system", "startfile")
OS_CALLS = tuple(f"os.{call}" for call in CALLS)
STARTING = ("ProcessPoolExecutor", "create_subprocess_exec", "create_subprocess_shell", "subprocess_exec")
#: Writing that follows a link or leaves half a file.
WRITERS = {"write_text", "write_bytes", "mkstemp", "NamedTemporaryFile", "copyfile", "copy2", "copytree"}
REPLACERS = {("os", "replace"), ("os", "rename"), ("os", "open"), ("os", "symlink"), ("shutil", "copy"), ("shutil", "move")}


def starts(tree: ast.AST) -> Iterator[str]:
    """What in a module starts a process, whatever it is called there."""
    for node in nodes(tree, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in STARTERS)
    for node in nodes(tree, ast.ImportFrom):
        if node.module:
            names = {alias.name for alias in node.names}
            if node.module in STARTERS or names & {"ProcessPoolExecutor", "create_subprocess_exec", "create_subprocess_shell"}:
                yield node.module
            elif node.module == "os":
                yield from (name for name in names if name.startswith(CALLS))
    for node in nodes(tree, ast.Attribute):
        name = dotted(node)
        if name.startswith(OS_CALLS) or node.attr in STARTING or name == "sys.executable":
            yield name


def writes(tree: ast.AST) -> Iterator[str]:
    """What in a module writes to a file by its name."""
    for node in nodes(tree, ast.Call):
        name = dotted(node.func)
        owner, _, method = name.rpartition(".")
        if not name and isinstance(node.func, ast.Attribute):
            method = node.func.attr
        texts = [a.value for a in (*node.args, *(k.value for k in node.keywords)) if isinstance(a, ast.Constant)]
        modes = [text for text in texts if isinstance(text, str) and set(text) <= set("rwxab+t") and set(text) & set("wxa")]
        if method in WRITERS or (owner, method) in REPLACERS or (method == "open" and modes and owner != "archive"):
            yield f"{ast.unparse(node)[:80]} in line {node.lineno}"


def test_only_one_module_starts_processes() -> None:
    found = {path: list(starts(parsed(path))) for path in SHIPPED}
    found = {str(path.relative_to(ROOT)): names for path, names in found.items() if names}
    assert found.pop("plugins/tools/src/oplet_tools/processes.py") != []
    # It reads what its process writes; the process itself is started by oplet_tools.processes.
    assert found.pop("fuzz/campaign.py") == ["subprocess"]
    # `oplet behind` runs a program that the user names, in this process.
    assert found.pop("plugins/tools/src/oplet_tools/behind/launch.py") == ["runpy"]
    # Predictor.map(processes=True) starts the standard library's worker processes; the test below holds where those import from.
    assert set(found.pop("plugins/predictor/src/oplet_predictor/worker_process.py")) == {"multiprocessing"}
    # It reads what `oplet explore` says.
    assert found.pop("plugins/model_explorer/src/oplet_model_explorer/graphs.py") == ["subprocess"]
    # It calls the machine's compiler.
    assert found.pop("benchmarks/native.py") == ["subprocess"]
    assert found == {}, "use oplet_tools.processes"
    called = {dotted(node.func) for node in nodes(parsed(ROOT / "fuzz" / "campaign.py"), ast.Call)}
    assert not {name for name in called if name.startswith("subprocess.")}


@pytest.mark.parametrize(
    "code",
    [
        "import subprocess",
        "from subprocess import run as harmless",
        "import multiprocessing as m",
        "from os import execv",
        "import os; os.posix_spawn",
        "os.system('x')",
        "from concurrent.futures import ProcessPoolExecutor",
        "import asyncio; asyncio.create_subprocess_exec()",
        "x = sys.executable",
        "import runpy",
    ],
)
def test_whatever_starts_a_process_is_found(code: str) -> None:
    assert list(starts(ast.parse(code)))


def test_only_one_module_writes_files() -> None:
    shipped = [path for path in SHIPPED if path.is_relative_to(CORE) or "plugins" in path.parts]
    found = {str(path.relative_to(CORE.parent)): list(writes(parsed(path))) for path in shipped if CORE in path.parents}
    found |= {str(path): list(writes(parsed(path))) for path in shipped if CORE not in path.parents}
    assert found.pop("oplet/model/files/atomic_write.py")
    assert found.pop(str(ROOT / "plugins/tools/src/oplet_tools/running/many/keeping/appending.py"))
    for path in (
        "oplet/model/files/regular_files.py",
        "oplet/model/reading.py",
    ):  # they open for reading, without waiting for a pipe
        assert all(call.startswith("os.open(") for call in found.pop(path))
        assert not re.search("O_(WRONLY|RDWR|CREAT|TRUNC|APPEND)", (CORE.parent / path).read_text())
    # A file that the system's loader reads once: new, its owner's alone, in the folder for temporary files, and gone at once.
    [temporary] = found.pop(str(ROOT / "plugins/native_ops/src/oplet_native_ops/shim/opening.py"))
    assert temporary.startswith("tempfile.NamedTemporaryFile(")
    # Files of folders that only the user may write: notes of fixed places.
    [cached] = found.pop("oplet/model/files/cache_folder.py")
    assert cached.startswith("os.open(path, flags | _SAFELY, 384)")
    # A program's own file, written or read from some byte on, as it asks LiteRT's functions of these names to.
    asked = found.pop(str(ROOT / "plugins/tools/src/oplet_tools/behind/stand_ins/tools/mmap_utils.py"))
    assert any(call.startswith("os.open(path, os.O_RDWR | os.O_CREAT") for call in asked)
    assert len(asked) == 3, asked
    assert {path: calls for path, calls in found.items() if calls} == {}, "use oplet.model.files.atomic_write"


@pytest.mark.parametrize(
    "code", ["open(p, 'wb')", "p.open('x')", "(a / b).write_text(t)", "os.replace(a, b)", "open(p, mode='a')"]
)
def test_whatever_writes_a_file_is_found(code: str) -> None:
    assert list(writes(ast.parse(code)))


PLANTED = ("json", "importlib", "sys_", "numpy", "marshal_", "time_", "statistics", "oplet", "zipfile", "typing", "sitecustomize")


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder full of modules that leave a mark when they are imported; gives where the marks would be."""
    folder, marks = tmp_path / "stranger", tmp_path / "marks"
    folder.mkdir()
    marks.mkdir()
    for name in PLANTED:
        (folder / f"{name}.py").write_text(f"open({str(marks / name)!r}, 'w').close()\nraise ImportError({name!r})\n")
    info = folder / "stranger-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[oplet]\nstranger = stranger_plugin\n")
    (folder / "stranger_plugin.py").write_text(f"open({str(marks / 'plugin')!r}, 'w').close()\n")
    shutil.copy(ROOT / "examples" / "atan" / "atan.tflite", folder / "model.tflite")
    monkeypatch.chdir(folder)
    return marks


def found_marks(marks: Path) -> list[str]:
    return sorted(path.name for path in marks.iterdir())


def test_the_times_of_a_report_are_taken_away_from_the_current_folder(trap: Path) -> None:
    code = "import importlib, json, sys; print(1.5)"
    times = report._interleaved({"before": ["-c", code], "after": ["-c", code]}, {}, lambda part: None, reported=True)
    assert times == {"before": 1.5, "after": 1.5}
    assert found_marks(trap) == []


def test_modules_are_compiled_away_from_the_current_folder(trap: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", os.getcwd()]))
    assert len(compiled({"a.py": b"x = {'b', 'c'}"})) == 2
    assert found_marks(trap) == []


def test_a_child_finds_the_users_packages_and_nothing_of_the_current_folder(
    trap: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "my_module.py").write_text("")
    relative = os.path.relpath(own)
    # Empty places and "." stand for the current folder; the user's other folders stay, and stay where they were.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", relative, "."]))
    code = "import json, numpy, oplet, my_module, sys, os; print(my_module.__file__, sys.prefix, len(os.listdir()))"
    done = run_python(["-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    file, prefix, there = done.stdout.split()
    assert Path(file).resolve() == (own / "my_module.py").resolve()
    assert prefix == sys.prefix
    assert there == "0"
    assert found_marks(trap) == []
    with python_process(["-c", code], stdout=subprocess.PIPE) as process:
        assert process.communicate()[0].split()[0].decode() == file
    assert found_marks(trap) == []


def test_without_python_s_own_switch_the_empty_folder_keeps_strangers_out(trap: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oplet_tools.processes._SAFE_PATH", ())  # as before Python 3.11
    done = run_python(["-c", "import importlib, json, numpy, statistics"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert found_marks(trap) == []


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python has no switch for it: docs/reliability.md says so")
def test_a_worker_process_of_predictor_map_runs_nothing_of_the_current_folder(trap: Path, tmp_path: Path) -> None:
    (tmp_path / "stranger" / "multiprocessing.py").write_text(
        f"open({str(trap / 'multiprocessing')!r}, 'w').close()\nraise ImportError"
    )
    script = tmp_path / "script.py"
    script.write_text(
        "import os, numpy as np, oplet\n"
        "if __name__ == '__main__':\n"
        "    predict = oplet.Predictor('model.tflite')\n"
        "    rows = [np.zeros(5, np.float32)] * 4\n"
        "    print(len(list(predict.map(rows, workers=1, processes=True))), os.environ.get('PYTHONSAFEPATH'))\n"
    )
    hidden = {"PYTHONPATH": "", "OPLET_DISABLE_PLUGINS": "oplet-compiled-ops"}
    command = [sys.executable, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **hidden}, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["4", "None"]
    assert found_marks(trap) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["plugins"],
        ["inspect", "model.tflite"],
        ["run", "model.tflite", "-o", "y.json"],
        ["build", "model.tflite", "--name", "trapped", "-o", "trapped.pyz"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_the_command_runs_nothing_of_the_current_folder(trap: Path, arguments: list[str], tmp_path: Path) -> None:
    command = shutil.which("oplet", path=os.path.dirname(sys.executable))
    if command is None:
        pytest.skip("the command is not installed beside this Python")
    hidden = {"PYTHONPATH": "", "OPLET_DISABLE_PLUGINS": "oplet-compiled-ops", "OPLET_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([command, *arguments], capture_output=True, text=True, env={**os.environ, **hidden}, check=False)
    assert done.returncode == 0, done.stderr
    assert "not measured" not in done.stdout + done.stderr
    assert "stranger" not in done.stdout
    assert found_marks(trap) == []
