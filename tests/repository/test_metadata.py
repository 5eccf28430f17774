"""What an index shows of each package is complete and true: description, licence and its files, keywords, classifiers, types, addresses."""

from __future__ import annotations

import re
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path
from typing import Any

import pytest
from packaging.licenses import canonicalize_license_expression
from packaging.specifiers import SpecifierSet
from scripts import packages
from scripts.requirements import ROOT, tomllib
from scripts.vendored import LIBRARIES

each = pytest.mark.parametrize("folder", packages.folders(), ids=lambda folder: folder.name)
#: Where a requirement has wheels for some of these alone, the package names those.
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
#: What must be in the folder that holds somebody else's files.
VENDORED = sorted({path.parent for path in ROOT.glob("*/*/src/**/vendored/*") if path.is_file()})


def project(folder: Path) -> dict[str, Any]:
    return dict(tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"])


@each
def test_metadata_is_complete(folder: Path) -> None:
    found = project(folder)
    assert {
        "name",
        "description",
        "readme",
        "license",
        "license-files",
        "requires-python",
        "keywords",
        "classifiers",
    } <= found.keys()
    assert 20 < len(found["description"]) < 200
    assert not found["description"].endswith(".")
    assert found["readme"] == "README.md"
    assert {"tflite", "litert"} <= set(found["keywords"])
    assert len(set(found["keywords"])) == len(found["keywords"]) > 2
    assert canonicalize_license_expression(found["license"]) == found["license"]


@each
def test_classifiers_are_true(folder: Path) -> None:
    found = project(folder)
    classifiers = found["classifiers"]
    assert classifiers == sorted(
        classifiers, key=lambda text: [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", text)]
    )
    assert not [text for text in classifiers if text.startswith("License ::")], (
        "license is an SPDX expression; classifiers of it are deprecated"
    )
    typed = list(folder.glob("src/*/py.typed"))
    modules = 0 if folder.name == "metapackage" else 1
    assert len(typed) == len([path for path in folder.glob("src/oplet*") if path.is_dir()]) == modules
    assert ("Typing :: Typed" in classifiers) is bool(modules)
    named = [text.rpartition(" ")[2] for text in classifiers if re.fullmatch(r"Programming Language :: Python :: 3\.\d+", text)]
    assert named == list(PYTHONS[: len(named)])
    assert all(SpecifierSet(found["requires-python"]).contains(each) for each in named)
    bounded = any("python_version < '3.13'" in text for text in found["dependencies"])
    assert len(named) == (3 if bounded else len(PYTHONS))


@each
def test_no_address_is_invented(folder: Path) -> None:
    """The project has no public address yet; whoever gives it one puts it here, and into every package."""
    assert project(folder).get("urls", {}) == {}


@each
def test_a_package_has_the_licence_of_the_project_and_of_all_that_it_holds(folder: Path) -> None:
    found = project(folder)
    assert (folder / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    files = {path.relative_to(folder).as_posix() for pattern in found["license-files"] for path in folder.glob(pattern)}
    held = {path for room in VENDORED if room.is_relative_to(folder) for path in room.glob("*.LICENSE.txt")}
    assert files == {"LICENSE", *(path.relative_to(folder).as_posix() for path in held)}
    licences = {library.licence for library in LIBRARIES} if held else set()
    assert set(re.split(r" AND ", found["license"])) == {"Apache-2.0", *licences}


def test_every_folder_of_vendored_files_is_seen_by_the_test_above() -> None:
    assert [room.relative_to(ROOT).as_posix() for room in VENDORED] == [
        "plugins/tools/src/oplet_tools/describing/exploring/vendored"
    ]


@pytest.mark.environment
def test_wheels_and_source_distributions_carry_these_licences(tmp_path: Path) -> None:
    for folder in (ROOT / "plugins/tools", ROOT / "plugins/build", ROOT / "core", ROOT / "metapackage"):
        sdist, wheel = packages.build(folder, tmp_path)
        files = {
            path.relative_to(folder).as_posix() for pattern in project(folder)["license-files"] for path in folder.glob(pattern)
        }
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
            [metadata] = [name for name in names if name.endswith(".dist-info/METADATA")]
            about = Parser().parsestr(archive.read(metadata).decode())
        assert set(about.get_all("License-File") or ()) == files
        assert {name.partition(".dist-info/licenses/")[2] for name in names if ".dist-info/licenses/" in name} == files
        with tarfile.open(sdist) as packed:
            assert files <= {name.partition("/")[2] for name in packed.getnames()}


def test_the_page_of_packages_names_each_of_them_and_what_the_extras_ask_for() -> None:
    page = (ROOT / "docs/packages.md").read_text("utf-8")
    names = {project(folder)["name"] for folder in packages.folders()} - {"oplet"}
    whom, _, extras = page.partition("\n## What the extras ask for\n")
    # Those that `oplet`, or an extra of it, stands for are named by it.
    by_extra = {"oplet-builtin-ops", "oplet-compiled-ops", "oplet-tools", "oplet-build"}
    assert set(re.findall(r"`(oplet-[\w-]+)`", whom)) >= names - by_extra
    assert set(re.findall(r"`(oplet-[\w-]+)`", page)) <= names
    told = {
        extra: re.findall(r"`([\w-]+)`", listed) for extra, listed in re.findall(r"^\| `(\w+)` \| (.*) \|$", extras, re.MULTILINE)
    }
    asked = project(ROOT / "metapackage")["optional-dependencies"]
    assert told == {extra: [re.split(r"[<>=]", text)[0] for text in texts] for extra, texts in asked.items()}
    assert set(re.findall(r'`"oplet\[(\w+)\]"`', whom)) == asked.keys() - {"ops"}, "which `oplet` asks for anyway"


@each
def test_a_readme_begins_with_what_the_package_is_for_and_how_it_is_installed(folder: Path) -> None:
    lines = (folder / "README.md").read_text("utf-8").splitlines()
    assert lines[0] == f"# {project(folder)['name']}"
    assert lines[1] == ""
    assert re.match(r"[A-Z`.]", lines[2]), "a sentence says what the package is for"
    first = "\n".join(lines[2:]).partition("\n\n")[0]
    assert first.endswith((".", ":")), first
    assert any("pip install" in line for line in lines[2:32])
