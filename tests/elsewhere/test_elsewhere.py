"""On macOS and Windows, and in a browser, as played here, all modules import, models answer the same, and commands do their work, whatever paths and code pages are."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import numpy as np
import pytest
from tests.children import run_child
from tests.elsewhere import models
from tests.places import CONFORMANCE, EXAMPLES, ROOT

from oplet_tools.running.many.keeping import appending

pytestmark = [
    pytest.mark.sweep,
    pytest.mark.skipif(sys.platform != "linux", reason="on another system it is no play: the units themselves run there"),
]
systems = pytest.mark.parametrize("system", ["win32", "darwin"])

#: A folder whose name has a space, and letters of several alphabets, some of which no code page has together.
STRANGE = "Ordner mit Größe, модели и 模型"
#: Packages by the folders of their sources, that no program other than their own imports.
PACKAGES = sorted(
    path.name
    for folder in (ROOT / "core", *(ROOT / "plugins").iterdir())
    for path in (folder / "src").glob("oplet*")
    if path.is_dir()
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a model, in which processes run."""
    folder = tmp_path / STRANGE
    folder.mkdir()
    for path in (EXAMPLES / "digits").glob("*.tflite"):
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


@pytest.fixture
def run(place: Path) -> Callable[..., CompletedProcess[bytes]]:
    """Runs a program, or the command, in a process that is told to be on a system, with a code page of Western Europe."""

    def ran(system: str, *arguments: object, code: int = 0) -> CompletedProcess[bytes]:
        kept = {name: text for name, text in os.environ.items() if not name.startswith("OPLET_")}
        paths = os.pathsep.join([str(ROOT), *sys.path])
        told = {"PYTHONPATH": paths, "PYTHONIOENCODING": "cp1252", "OPLET_CACHE_DIR": str(place / "Кэш")}
        if system == "emscripten":
            told["OPLET_DISABLE_PLUGINS"] = "compiled_ops,native_ops"  # machine code, which a browser does not run
        child = Path(__file__).with_name("child.py")
        command = [sys.executable, "-X", "warn_default_encoding", child, system, *arguments]
        return run_child(command, code=code, cwd=place, env=kept | told, text=False)

    return ran


@systems
def test_every_module_of_every_package_imports(system: str, run: Callable[..., CompletedProcess[bytes]]) -> None:
    done = run(system, Path(__file__).with_name("everything.py"), *PACKAGES)
    failed = json.loads(done.stdout.splitlines()[-1])
    # A package whose engine is not installed cannot be imported here at all.
    wrong = {name: said for name, said in failed.items() if not said.startswith("ModuleNotFoundError: No module named")}
    ours = {name: said for name, said in failed.items() if "'oplet" in said}
    assert len(failed) < 100
    assert (wrong, ours) == ({}, {})


@systems
def test_models_answer_the_same(system: str, run: Callable[..., CompletedProcess[bytes]], place: Path) -> None:
    program = Path(__file__).with_name("models.py")
    (here := place / "here").mkdir()
    expected = models.main(str(place / "digits_int8.tflite"), str(here))
    for _ in range(2):
        assert json.loads(run(system, program, place / "digits_int8.tflite", place).stdout) == expected


@pytest.mark.parametrize("corpus", ["ops", "real"])
def test_recorded_cases_run_with_the_indices_and_clocks_of_a_browser(
    corpus: str, run: Callable[..., CompletedProcess[bytes]], place: Path
) -> None:
    cases = place / corpus
    cases.mkdir()
    for path in (CONFORMANCE / corpus).glob("*.zip"):
        if path.stem != "unrunnable":  # its models are no matter of the system
            (cases / path.name).symlink_to(path)
    (place / "run.py").symlink_to(CONFORMANCE / "run.py")
    run("emscripten", ROOT / "scripts" / "browser" / "recorded.py", cases, place / "results.jsonl")
    assert len((place / "results.jsonl").read_text().splitlines()) > 100


@systems
def test_the_command_runs_rows_and_goes_on_where_it_was_interrupted(
    system: str, run: Callable[..., CompletedProcess[bytes]], place: Path
) -> None:
    rows = [json.dumps({"image": np.full((1, 8, 8, 1), number / 10).tolist()}) for number in range(6)]
    (place / "строки.jsonl").write_text("\n".join(rows) + "\n", "utf-8")
    command = "oplet", "run", "digits_float32.tflite", "--input", "строки.jsonl", "--output"
    run(system, *command, "ganz.csv")
    whole = (place / "ganz.csv").read_bytes()
    assert whole.count(b"\n") == 7
    rows[3] = json.dumps({"image": [[0.5]]})
    (place / "строки.jsonl").write_text("\n".join(rows) + "\n", "utf-8")
    assert b"Row 3" in run(system, *command, "結果.csv", "--strict", code=1).stderr
    assert (place / "結果.csv.oplet-run" / "rows.csv").read_bytes() == b"\n".join(whole.split(b"\n")[:4]) + b"\n"
    assert b"Row 3" in run(system, *command, "結果.csv", "--strict", "--resume", code=1).stderr
    assert b"continuing after 3 rows" in run(system, *command, "結果.csv", "--resume", code=3).stderr
    assert (place / "結果.csv").read_bytes().split(b"\n")[:4] == whole.split(b"\n")[:4]


@systems
def test_labels_that_no_code_page_has_are_printed_escaped(
    system: str, run: Callable[..., CompletedProcess[bytes]], place: Path
) -> None:
    (place / "labels.txt").write_text("".join(f"число {number} 数é\n" for number in range(10)), "utf-8")
    np.save(place / "x.npy", np.zeros((1, 8, 8, 1), np.float32))
    done = run(system, "oplet", "run", "digits_float32.tflite", "--input", "x.npy", "--top", "1", "--labels", "labels.txt")
    assert rb"\u0447\u0438\u0441\u043b\u043e" in done.stdout
    assert "é".encode("cp1252") in done.stdout


@systems
@pytest.mark.parametrize("command", [
    ["--version"], ["doctor"], ["plugins"], ["versions"], ["inspect", "digits_int8.tflite"], ["tune", "digits_int8.tflite"],
    ["benchmark", "digits_int8.tflite", "--num-runs", "3"], ["explore", "digits_int8.tflite", "-o", "граф.json"],
    ["new-op", "Größer", "--folder", "neu"], ["run", "нет такой.tflite"],
], ids=lambda command: command[0])  # fmt: skip
def test_commands_end_without_a_traceback(system: str, command: list[str], run: Callable[..., Any], place: Path) -> None:
    kept = dict(os.environ)
    done = run(system, "oplet", *command, code=None)
    assert b"Traceback" not in done.stderr
    assert b"unexpected" not in done.stderr
    assert done.returncode in (0, 1, 2)
    assert kept == dict(os.environ)


@pytest.mark.parametrize("written", [b"", b"abc"])
def test_on_windows_a_byte_is_locked_that_nobody_reads(written: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.elsewhere import systems as played

    from oplet.toolkit import OwnFolder

    monkeypatch.setattr(appending.sys, "platform", "win32")
    monkeypatch.setitem(sys.modules, "msvcrt", played._msvcrt())
    folder = OwnFolder(tmp_path / "run")
    with folder.update("rows.csv") as file:
        file.write(written)
    locked = appending.AppendedFile(folder, "rows.csv")
    assert played.locked[-1] > 1 << 30
    with pytest.raises(BlockingIOError):
        appending.AppendedFile(folder, "rows.csv")
    locked.append(b"def")
    locked.close()
    assert (tmp_path / "run" / "rows.csv").read_bytes() == written + b"def"
