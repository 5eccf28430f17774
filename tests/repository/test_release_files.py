"""What goes with a release: the same bytes from every checkout, their checksums, and a bill of materials that names all of it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from scripts import packages
from scripts.requirements import ROOT, tomllib
from scripts.vendored import LIBRARIES

release_files = pytest.importorskip("scripts.release_files", reason="pip install cyclonedx-python-lib", exc_type=ImportError)

BUILT = ("core", "metapackage", "plugins/atan_op", "plugins/tools")

pytestmark = pytest.mark.environment


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Distributions of a few packages, with what goes with them."""
    folder = tmp_path_factory.mktemp("dist")
    for each in BUILT:
        packages.build(ROOT / each, folder / ("plugins" if "/" in each else "core"))
    release_files.main([str(folder)])
    return folder


@pytest.fixture(scope="module")
def bill(release: Path) -> dict[str, Any]:
    return dict(json.loads((release / release_files.BILL).read_text("utf-8")))


def test_another_checkout_on_another_day_gives_the_same_bytes(release: Path, tmp_path: Path) -> None:
    clone = tmp_path / "elsewhere" / "clone"
    clone.mkdir(parents=True)
    shutil.copy(ROOT / ".gitignore", clone)  # hatchling reads it, and puts it into each source distribution
    for each in BUILT:
        shutil.copytree(ROOT / each, clone / each, ignore=shutil.ignore_patterns("__pycache__", "build"))
        for path in (clone / each).rglob("*"):
            os.utime(path, (1_600_000_000, 1_600_000_000))
        packages.build(clone / each, tmp_path / "dist" / ("plugins" if "/" in each else "core"))
    release_files.main([str(tmp_path / "dist")])
    again = {path.relative_to(tmp_path / "dist"): path.read_bytes() for path in (tmp_path / "dist").rglob("*") if path.is_file()}
    assert again == {path.relative_to(release): path.read_bytes() for path in release.rglob("*") if path.is_file()}


def test_the_checksums_are_those_of_all_files(release: Path) -> None:
    lines = (release / release_files.SUMS).read_text("utf-8").splitlines()
    told = {path: digest for digest, _, path in (line.partition("  ") for line in lines)}
    there = {path for path in release.rglob("*") if path.suffix in (".whl", ".gz")}
    assert told == {path.relative_to(release).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in there}
    assert len(told) == 2 * len(BUILT)


def test_the_bill_names_each_package_its_licence_its_files_and_what_it_requires(release: Path, bill: dict[str, Any]) -> None:
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    by_name = {each["name"]: each for each in bill["components"]}
    needs = {each["ref"]: each.get("dependsOn", []) for each in bill["dependencies"]}
    sums = release_files.checksums(release)
    files = {}
    for folder in BUILT:
        project = tomllib.loads((ROOT / folder / "pyproject.toml").read_text("utf-8"))["project"]
        component = by_name[project["name"]]
        assert component["licenses"] == [{"expression": project["license"]}]
        stated = {each["value"] for each in component["properties"] if each["name"] == "oplet:requires"}
        assert len(stated) >= len(project["dependencies"])
        assert len(needs[component["bom-ref"]]) == len(project["dependencies"])
        files |= {each["url"]: each["hashes"][0]["content"] for each in component["externalReferences"]}
    assert files == sums
    references = {each["bom-ref"] for each in bill["components"]}
    assert {need for found in needs.values() for need in found} <= references


def test_the_bill_names_what_is_copied_into_a_package(bill: dict[str, Any]) -> None:
    [tools] = [each for each in bill["components"] if each["name"] == "oplet-tools"]
    assert sorted(f"{each['name']}@{each['version']}" for each in tools["components"]) == sorted(
        each.package for each in LIBRARIES
    )
