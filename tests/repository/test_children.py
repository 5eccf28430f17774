"""Who reads what a child process said looks at how it ended, and no process is stopped because the machine is busy."""

from __future__ import annotations

import ast
import re
import signal
import sys
from collections.abc import Iterator

import pytest
from scripts.syntax import dotted, nodes
from tests.children import run_child
from tests.places import ROOT

#: The least seconds after which a test may take a process to hang.
LEAST = 300
FILES = sorted(
    path
    for folder in (ROOT / "tests", ROOT / "core" / "tests", *(ROOT / "plugins").glob("*/tests"))
    for path in folder.rglob("*.py")
    if path != ROOT / "tests" / "children.py"
)


def unseen(tree: ast.AST) -> Iterator[str]:
    """Calls of `subprocess.run` whose function never looks at the exit code, or which do not wait long."""
    own = {node.name for node in nodes(tree, ast.FunctionDef)}
    starting = {"subprocess.run", "subprocess.check_output", "run_python"} - own
    if not any(dotted(node.func) in starting for node in nodes(tree, ast.Call)):
        return
    for room in nodes(tree, ast.FunctionDef, ast.AsyncFunctionDef):
        looks = any(isinstance(node, ast.Attribute) and node.attr == "returncode" for node in ast.walk(room))
        for node in ast.walk(room):
            if isinstance(node, ast.Call) and dotted(node.func) in starting:
                given = {keyword.arg: keyword.value for keyword in node.keywords}
                timeout = given.get("timeout")
                if not looks and not ("check" in given and ast.unparse(given["check"]) == "True"):
                    yield f"line {node.lineno} of {room.name} does not look at the exit code"
                if isinstance(timeout, ast.Constant) and timeout.value < LEAST:
                    yield f"line {node.lineno} of {room.name} waits {timeout.value} seconds"


#: What a file has in which a process is started.
STARTING = re.compile(r"subprocess\s*\.\s*(run|check_output)|run_python")


def test_tests_learn_how_a_child_ended_before_they_read_what_it_said() -> None:
    found = {
        str(path.relative_to(ROOT)): list(unseen(ast.parse(text)))
        for path in FILES
        if STARTING.search(text := path.read_text("utf-8"))
    }
    assert len(found) > 20
    assert {path: spots for path, spots in found.items() if spots} == {}, "use tests.children.run_child"


@pytest.mark.parametrize(
    "code",
    [
        "def test(): assert subprocess.run(['x'], capture_output=True).stdout",
        "def test():\n    done = subprocess.run(['x'], timeout=60)\n    assert not done.returncode",
    ],
)
def test_a_child_whose_end_nobody_looks_at_is_found(code: str) -> None:
    assert list(unseen(ast.parse(code)))


def child(program: str, **options: object) -> str:
    with pytest.raises(AssertionError) as caught:
        run_child([sys.executable, "-c", f"import os, signal, sys, time\n{program}"], **options)  # type: ignore[arg-type]
    return str(caught.value)


def test_a_child_that_ends_otherwise_is_told_with_what_it_said() -> None:
    told = child("print('out'); sys.exit('no such thing')")
    assert "ended with 1, not 0" in told
    assert told.endswith("stdout: out\n\nstderr: no such thing\n")
    assert "ended with 0, not 3" in child("pass", code=3)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there are no signals here")
@pytest.mark.parametrize("code", [0, None])
def test_a_child_that_was_killed_is_told_as_such(code: int | None) -> None:
    told = child("print('begun', flush=True); os.kill(os.getpid(), signal.SIGKILL)", code=code)
    assert "was ended by SIGKILL" in told
    assert "begun" in told


def test_a_child_that_hangs_is_told_as_such() -> None:
    told = child("print('begun', flush=True); time.sleep(1000)", timeout=5.0)
    assert "did not end in 5 seconds" in told


def test_what_a_child_said_is_given_back() -> None:
    assert run_child([sys.executable, "-c", "print('ä')"], env={"PYTHONIOENCODING": "utf-8"}, encoding="utf-8").stdout == "ä\n"
    assert run_child([sys.executable, "-c", "raise SystemExit(7)"], code=None).returncode == 7
    assert run_child([sys.executable, "-c", "print(1)"], text=False).stdout.split() == [b"1"]
