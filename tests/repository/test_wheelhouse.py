"""A wheel that several tests install is built once a run, by whichever process asks first."""

from __future__ import annotations

import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests import wheelhouse
from tests.children import run_child


@pytest.fixture
def builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What has been built, in a wheelhouse that begins empty."""
    built: list[str] = []

    def build(folder: Path, target: Path) -> list[Path]:
        built.append(folder.name)
        name = str(wheelhouse._project(folder.name)["name"]).replace("-", "_")
        files = [target / f"{name}-0.1.tar.gz", target / f"{name}-0.1-py3-none-any.whl"]
        for file in files:
            file.write_text(folder.name)
        return files

    monkeypatch.setattr(wheelhouse, "FOLDER", tmp_path / "wheelhouse")
    monkeypatch.setattr(wheelhouse.packages, "build", build)
    return built


def test_many_who_ask_at_once_get_one_wheel(builds: list[str]) -> None:
    with ThreadPoolExecutor(8) as threads:
        found = set(threads.map(wheelhouse.wheel, ["atan_op"] * 8))
    assert builds == ["atan_op"]
    assert [path.name for path in found] == ["oplet_atan_op-0.1-py3-none-any.whl"]
    assert found.pop().read_text() == "atan_op"


def test_a_package_comes_with_those_of_this_repository_that_it_requires(builds: list[str]) -> None:
    names = {path.name.partition("-")[0] for path in wheelhouse.needed("build", "builtin_ops")}
    assert names == {"oplet_build", "oplet_builtin_ops", "oplet_core", "oplet_predictor", "oplet_tools"}
    assert sorted(builds) == sorted({*builds})


def test_nothing_half_made_is_taken_for_a_wheel(builds: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    good = wheelhouse.packages.build

    def breaks(folder: Path, target: Path) -> list[Path]:
        good(folder, target)
        raise OSError("no space left")

    monkeypatch.setattr(wheelhouse.packages, "build", breaks)
    with pytest.raises(OSError, match="no space"):
        wheelhouse.wheel("core")
    monkeypatch.setattr(wheelhouse.packages, "build", good)
    assert wheelhouse.wheel("core").read_text() == "core"


@pytest.mark.environment
def test_what_a_package_needs_is_all_there_and_can_be_imported(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", tmp_path / "site"]
    run_child([*pip, *wheelhouse.needed("atan_op")])
    assert {path.name for path in (tmp_path / "site").glob("oplet*") if "." not in path.name} == {"oplet", "oplet_atan_op"}


def test_what_a_page_installs_by_name_is_installed_from_wheels(builds: list[str], tmp_path: Path) -> None:
    from plugins.tools.tests.scaffolding.followed_pages import with_wheels

    page = tmp_path / "page.md"
    page.write_text(
        '    a/bin/pip install oplet-atan-op\n    a/bin/pip install -e ".[test]"\n    a/bin/pip install numpy\n'
        '    a/bin/pip install "oplet[cli]"\n    a/bin/pip install "oplet[cli]" oplet-atan-op\n'
    )
    found = with_wheels(page)
    wheels = {old: set(re.findall(r' "\S+/(\w+)-0.1-py3-none-any.whl"', new)) for old, new in found.items()}
    command = {"oplet", "oplet_builtin_ops", "oplet_core", "oplet_predictor", "oplet_tools"}
    assert wheels == {
        ' "oplet[cli]" oplet-atan-op': {*command, "oplet_atan_op"},
        ' "oplet[cli]"': command,
        " oplet-atan-op": {"oplet_atan_op", "oplet_core"},
    }
    assert next(iter(found)) == ' "oplet[cli]" oplet-atan-op'
