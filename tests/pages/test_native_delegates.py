"""docs/native-delegates.md, compiled and run as it is written."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.places import ROOT

PAGE = ROOT / "docs" / "native-delegates.md"


def blocks(language: str) -> Iterator[str]:
    page = PAGE.read_text()
    for block in re.finditer(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE):
        yield "\n" * page.count("\n", 0, block.start(1)) + block[1]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the page's source."""
    if shutil.which("c++") is None:
        pytest.skip("there is no compiler here")
    monkeypatch.chdir(tmp_path)
    for text in blocks("cpp"):
        name = re.match(r"// (\S+)", text.lstrip())
        assert name
        (tmp_path / name[1]).write_text(text)
    return tmp_path


def compile_as_told(folder: Path) -> None:
    [command] = re.findall(r"^    (c\+\+ .*)$", PAGE.read_text(), re.MULTILINE)
    command = command.replace("$(python ", f"$({shlex.quote(sys.executable)} ")
    done = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    assert not done.stderr


def test_the_page_compiles_and_runs(folder: Path) -> None:
    compile_as_told(folder)
    names: dict[str, object] = {"__name__": "page"}
    found = list(blocks("python"))
    assert len(found) == 2
    for text in found:
        exec(compile(text, str(PAGE), "exec"), names)


def test_its_command_runs(folder: Path) -> None:
    compile_as_told(folder)
    names: dict[str, object] = {"__name__": "page"}
    exec(compile(next(blocks("python")), str(PAGE), "exec"), names)
    (folder / "model.tflite").write_bytes(names["builder"].to_bytes())  # type: ignore[attr-defined]
    [command] = re.findall(r"^    (oplet run .*libneg.*)$", PAGE.read_text(), re.MULTILINE)
    done = subprocess.run([sys.executable, "-m", *shlex.split(command)], cwd=folder, capture_output=True, text=True)
    assert not done.returncode, done.stderr


def test_it_names_the_options_that_the_litert_delegate_takes() -> None:
    settings = pytest.importorskip("oplet_litert_delegate.settings")
    [options] = re.findall(r'^    load_delegate\("litert", (\{.*\})\)$', PAGE.read_text(), re.MULTILINE)
    read = settings.Settings.read(eval(options))
    assert read.library == "libvx_delegate.so"
    assert dict(read.library_options) == {"cache": "/tmp/cache"}
