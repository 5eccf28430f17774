"""Wheels carry the library for their platform and need no compiler; a source distribution is compiled where it is installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest
from scripts import packages
from scripts.requirements import ROOT
from tests.children import run_child
from tests.wheelhouse import needed

from oplet_native_ops.shim.elf import read_elf

pytestmark = pytest.mark.environment

HERE = ROOT / "plugins" / "native_ops"
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
PROGRAM = """
import sys
import numpy as np
from oplet_testing import Spec, one_op_model, run_op
from oplet_native_ops import load_ops
model = one_op_model("Atan", [Spec("float32", [2])], [Spec("float32", [2])])
[y] = run_op(model, np.array([0, 1], np.float32), op_resolver=load_ops(sys.argv[1]))
print(y.tolist())
"""


def fresh(folder: Path, files: list[Path], **environment: str) -> str:
    """A new environment's Python, with these files of packages installed in it."""
    venv.create(folder, with_pip=False)
    python = str(folder / "bin" / "python")
    command = [*PIP, "--python", python, "install", "--quiet", *map(str, files)]
    done = subprocess.run(command, env=clean(**environment), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return python


def clean(**more: str) -> dict[str, str]:
    """The environment without anything that helps: no paths of Python's, and no compiler."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "OPLET", "CC", "LD_"))}
    return {**kept, "PATH": "/nowhere", **more}


def runs(python: str, library: str) -> str:
    return run_child([python, "-c", PROGRAM, library], env=clean()).stdout


@pytest.fixture(scope="module")
def others() -> list[Path]:
    """Wheels of what this package needs of this repository, and what the program here does."""
    return needed("core", "builtin_ops", "testing")


def test_a_wheel_works_in_a_fresh_environment_without_a_compiler(build_once: Any, others: list[Path], tmp_path: Path) -> None:
    [_, wheel] = packages.build(HERE, tmp_path / "dist")
    assert re.search(r"-py3-none-linux_\w+\.whl$", wheel.name)
    python = fresh(tmp_path / "venv", [*others, wheel])
    assert runs(python, build_once("atan_operator.cc")).startswith("[0.0, 0.785398")


def test_a_source_distribution_is_compiled_where_it_is_installed(build_once: Any, others: list[Path], tmp_path: Path) -> None:
    [sdist, _] = packages.build(HERE, tmp_path / "dist")
    python = fresh(tmp_path / "venv", [*others, sdist], PATH=os.environ["PATH"])
    assert runs(python, build_once("atan_operator.cc")).startswith("[0.0, 0.785398")


def test_without_a_compiler_pip_brings_one(build_once: Any, others: list[Path], tmp_path: Path) -> None:
    [sdist, _] = packages.build(HERE, tmp_path / "dist")
    python = fresh(tmp_path / "venv", [*others, sdist])
    assert runs(python, build_once("atan_operator.cc")).startswith("[0.0, 0.785398")


def test_one_command_makes_wheels_for_four_platforms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not packages.has_ziglang():
        pytest.skip("there is no ziglang here")
    packages.main([str(tmp_path), "--only", "native_ops"])
    sdist, *wheels = (Path(line) for line in capsys.readouterr().out.split())
    assert sdist.name.endswith(".tar.gz")
    found = {}
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            data = archive.read("oplet_native_ops/liboplet_native.so")
            tags = re.findall(
                r"^Tag: (.+)$", archive.read(next(n for n in archive.namelist() if n.endswith("/WHEEL"))).decode(), re.M
            )
        path = tmp_path / "library.so"
        path.write_bytes(data)
        info = read_elf(str(path))
        assert "TfLiteOperatorCreate" in info.functions
        assert len(data) < 100_000
        newest = max((tuple(map(int, v.split(b"."))) for v in re.findall(rb"GLIBC_(\d+\.\d+)", data)), default=(0, 0))
        assert newest <= (2, 17)
        found[wheel.name.split("-py3-none-")[1]] = (info.machine, info.needed)
        assert all(tag.startswith("py3-none-") for tag in tags)
    glibc, musl = ("libc.so.6",), ("libc.so",)
    assert found == {
        "manylinux_2_17_x86_64.manylinux2014_x86_64.whl": ("x86-64", glibc),
        "manylinux_2_17_aarch64.manylinux2014_aarch64.whl": ("aarch64", glibc),
        "musllinux_1_1_x86_64.whl": ("x86-64", musl),
        "musllinux_1_1_aarch64.whl": ("aarch64", musl),
    }


def test_an_installation_for_development_has_the_library_in_its_folder(others: list[Path], tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    ignored = shutil.ignore_patterns("*.so", "__pycache__", "tests")
    for part in ("core", "plugins/native_ops"):
        shutil.copytree(ROOT / part, clone / part, ignore=ignored)
    python = str(tmp_path / "venv" / "bin" / "python")
    venv.create(tmp_path / "venv", with_pip=False)
    command = [*PIP, "--python", python, "install", "--quiet", *map(str, others), "-e", str(clone / "plugins/native_ops")]
    run_child(command, env=clean(PATH=os.environ["PATH"]))
    assert (clone / "plugins/native_ops/src/oplet_native_ops/liboplet_native.so").is_file()
    check = "from oplet_native_ops.shim.library import shim, library_path; shim(); print(library_path())"
    told = run_child([python, "-c", check], env=clean()).stdout.strip()
    assert Path(told).is_relative_to(clone)
