"""The packages run with the lowest versions that they allow, of those that this Python can have."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
import venv
from collections.abc import Iterable
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version
from scripts.requirements import ROOT, tomllib
from tests.children import run_child
from tests.wheelhouse import wheel

pytestmark = pytest.mark.environment

#: Packages whose lowest versions go together share an environment: those with engines for models, Beam (which wants a newer Pillow than
#: oplet-tools allows at least), those for many rows, TensorFlow.
GROUPS = (
    (
        "core",
        "atan_op",
        "build",
        "builtin_ops",
        "compiled_model",
        "coral_ops",
        "example_delegate",
        "flex_ops",
        "larq_ops",
        "litert_delegate",
        "litert_shim",
        "lm",
        "mediapipe_ops",
        "model_explorer",
        "native_ops",
        "compiled_ops",
        "openvino_delegate",
        "predictor",
        "signal_ops",
        "testing",
        "text_ops",
        "tools",
    ),
    ("beam_handler",),
    ("ray_batch", "serve"),
    ("flex_delegate",),
    ("xla_delegate",),
)
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]


def folder(package: str) -> Path:
    return ROOT / package if package == "core" else ROOT / "plugins" / package


def with_required(packages: Iterable[str]) -> list[str]:
    """These packages, those of this repository that they require, directly or not, and those with which they are tried."""
    found: set[str] = set()
    waiting = ["core", "builtin_ops", "testing", *packages]
    while waiting:
        package = waiting.pop()
        if package not in found:
            found.add(package)
            project = tomllib.loads((folder(package) / "pyproject.toml").read_text("utf-8"))["project"]
            names = {Requirement(text).name for text in project["dependencies"]} - {"oplet-core"}
            waiting += [name.removeprefix("oplet-").replace("-", "_") for name in names if name.startswith("oplet-")]
    return sorted(found)


def needs(packages: Iterable[str], extras: bool = False) -> dict[str, SpecifierSet]:
    """What these packages, and their extras, require of others: the bounds of all of them together, by name."""
    found: dict[str, SpecifierSet] = {}
    for package in packages:
        project = tomllib.loads((folder(package) / "pyproject.toml").read_text("utf-8"))["project"]
        more = project.get("optional-dependencies", {}).values() if extras else ()
        for requirement in map(Requirement, [*project["dependencies"], *(text for texts in more for text in texts)]):
            if not requirement.name.startswith("oplet"):
                name = canonicalize_name(requirement.name)
                found[name] = found.get(name, SpecifierSet()) & requirement.specifier
    return found


@functools.cache
def lowest(name: str, bounds: SpecifierSet) -> str:
    """The lowest release within the bounds that has a wheel for this Python."""
    listed = run_child([*PIP, "index", "versions", name]).stdout
    versions = re.findall(r"[^\s,]+", listed.partition("Available versions:")[2].partition("\n")[0])
    for version in sorted((v for v in versions if bounds.contains(v)), key=Version):
        pip = [
            *PIP,
            "install",
            "--quiet",
            "--dry-run",
            "--ignore-installed",
            "--no-deps",
            "--only-binary=:all:",
            f"{name}=={version}",
        ]
        if run_child(pip, code=None).returncode == 0:
            return version
    raise AssertionError(f"No wheel of {name}{bounds} for this Python can be had.")


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group[0])
def test_packages_run_with_the_lowest_versions_that_they_allow(group: tuple[str, ...], tmp_path: Path) -> None:
    packages = with_required(group)
    pins = [f"{name}=={lowest(name, bounds)}" for name, bounds in sorted(needs(packages, "core" in group).items())]
    wheels = [str(wheel(package)) for package in packages]
    venv.create(tmp_path / "venv", with_pip=False)
    [python] = [p for p in (tmp_path / "venv/bin/python", tmp_path / "venv/Scripts/python.exe") if p.exists()]
    installing = [*PIP, "--python", str(python), "install", "--quiet", "--only-binary=:all:"]
    run_child([*installing, *pins, *wheels])
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "OPLET"))}
    environment |= {"PYTHONPATH": str(ROOT / "tests" / "repository"), "OPLET_CACHE_DIR": str(tmp_path / "cache")}
    for package in group:
        command = [str(python), "-m", "lowest_versions", package, str(ROOT / "examples")]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{package} with {', '.join(pins)}: {done.stdout[-2000:]}{done.stderr[-4000:]}"


def test_what_a_package_requires_is_tried_with_it() -> None:
    assert with_required(["build"]) == ["build", "builtin_ops", "core", "predictor", "testing", "tools"]
    assert {"typer", "numpy", "ray"} <= needs(with_required(["ray_batch", "serve"])).keys()


def test_every_package_is_in_a_group() -> None:
    plugins = [path.parent.name for path in ROOT.glob("plugins/*/pyproject.toml")]
    assert sorted(package for group in GROUPS for package in group) == sorted(["core", *plugins])


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="that numpy is older than this Python")
def test_the_operators_pass_their_tests_with_the_lowest_numpy_that_is_allowed(tmp_path: Path) -> None:
    # Before numpy 2 the values of single numbers decide on the types of results, so that narrow integers stay narrow.
    bounds = needs(["core"])
    pins = [f"{name}=={lowest(name, bounds[name])}" for name in ("numpy", "ml-dtypes")]
    run_child([*PIP, "install", "--quiet", "--no-deps", "--target", str(tmp_path / "installed"), *pins])
    # Found before what the environment of the other tests has.
    paths = os.pathsep.join(filter(None, (str(tmp_path / "installed"), os.environ.get("PYTHONPATH", ""))))
    tests = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "", "plugins/builtin_ops"]
    done = subprocess.run(
        [sys.executable, *tests], cwd=ROOT, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
