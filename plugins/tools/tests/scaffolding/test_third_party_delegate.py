"""A delegate that somebody else publishes: generated, tested, built and installed in environments of its own, used by name."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.children import run_child
from tests.wheelhouse import needed

from oplet_testing import Graph, Op, Spec, graph_model

pytestmark = pytest.mark.environment

VECTOR = Spec("float32", [3])
#: Two partitions, of two nodes and of one.
MODEL = graph_model(
    Graph(
        dict.fromkeys("abcde", VECTOR),
        "a",
        "e",
        [Op("TANH", "a", "b"), Op("TANH", "b", "c"), Op("RELU", "c", "d"), Op("TANH", "d", "e")],
    )
)


class Environment:
    """A virtual environment without anything of this repository."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Debian keeps what `venv` needs to install pip in a package of its own; this environment's pip serves both.
        run_child([sys.executable, "-m", "venv", "--without-pip", folder])

    def install(self, *what: object) -> None:
        pip = [sys.executable, "-m", "pip", "--python", self.folder / "bin" / "python", "install", "--quiet"]
        self._run([*pip, *what], expect=0)

    def run(self, command: str, *arguments: object, cwd: Path, expect: int = 0) -> str:
        """What a command of the environment prints, errors included."""
        return self._run([self.folder / "bin" / command, *arguments], cwd=cwd, expect=expect)

    def _run(self, command: list[object], *, expect: int, cwd: Path | None = None) -> str:
        hidden = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME")
        environment = {k: v for k, v in os.environ.items() if k not in hidden and not k.startswith("OPLET_")}
        environment["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
        done = subprocess.run(list(map(str, command)), cwd=cwd, env=environment, capture_output=True, text=True, timeout=600)
        assert done.returncode == expect, f"{command}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout + done.stderr


def test_a_published_delegate_is_found_by_name_and_used(tmp_path: Path) -> None:
    author = Environment(tmp_path / "author")
    author.install(*needed("tools", "testing", "builtin_ops"))
    author.run("oplet", "new-delegate", "Fast.NPU", cwd=tmp_path)
    package = tmp_path / "oplet-fast-npu-delegate"
    author.install("-e", f"{package}[test]")
    tested = author.run("pytest", "-q", cwd=package)
    print(re.findall(r"\d+ passed.*", tested))
    assert not re.search(r"\d+ (failed|errors?|skipped)", tested)
    author.install("build", "hatchling")
    author.run("python", "-m", "build", "--wheel", "--no-isolation", cwd=package)
    [wheel] = (package / "dist").glob("*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert names == {f"oplet_fast_npu_delegate/{name}" for name in ("__init__.py", "delegate.py", "py.typed")}

    # Somebody else's environment, before and after the wheel is installed.
    user, place = Environment(tmp_path / "user"), tmp_path / "elsewhere"
    place.mkdir()
    (place / "model.tflite").write_bytes(MODEL)
    (place / "x.json").write_text("[-1.5, 0, 2]")
    user.install(*needed("tools", "builtin_ops"))
    run = ["run", "model.tflite", "--input", "x.json", "--output", "y.json"]
    refused = user.run("oplet", *run, "--delegate", "Fast.NPU", cwd=place, expect=1)
    assert "no installed package brings a delegate of that name; give the name of one after installing its package" in refused
    user.run("oplet", *run, cwd=place)
    wanted = json.loads((place / "y.json").read_text())

    user.install(wheel)
    assert "Fast.NPU" in user.run("oplet", "plugins", cwd=place)
    said = user.run("oplet", *run, "--delegate", "Fast.NPU", cwd=place)
    assert "2 by the delegate Fast.NPU" in said
    assert "1 by oplet-builtin-ops" in said
    assert json.loads((place / "y.json").read_text()) == {"e": pytest.approx(wanted["e"], rel=1e-6)}
    with_option = user.run("oplet", *run, "--delegate", "Fast.NPU:min_nodes=2", cwd=place)
    assert "1 by the delegate Fast.NPU" in with_option
    assert "2 by oplet-builtin-ops" in with_option
    wrong = user.run("oplet", *run, "--delegate", "Fast.NPU:min_nodes=many", cwd=place, expect=1)
    assert "'min_nodes=many' is none of its options" in wrong
    compared = user.run("oplet", "compare", "model.tflite", "--delegate", "Fast.NPU", "--layers", cwd=place)
    assert "runs 3 of 4 nodes in 2 partitions" in compared
    assert "pass at" in compared
    code = (
        "from oplet import Interpreter, load_delegate\n"
        "i = Interpreter('model.tflite', experimental_delegates=[load_delegate('Fast.NPU', {'min_nodes': 2})])\n"
        "print(i.delegation_reports()[0].partitions, i.delegation_reports()[0].unsupported[2])"
    )
    assert "[[0, 1]] RELU is none of its operators" in user.run("python", "-c", code, cwd=place)
