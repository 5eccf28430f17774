"""The pages of policy say what the packages say: versions of Python, numpy and LiteRT; and how to cite and whom to tell."""

from __future__ import annotations

import re
from typing import Any

import yaml
from packaging.requirements import Requirement
from scripts.requirements import ROOT, tomllib

PAGE = (ROOT / "docs/versions.md").read_text("utf-8")


def project(folder: str) -> dict[str, Any]:
    return dict(tomllib.loads((ROOT / folder / "pyproject.toml").read_text("utf-8"))["project"])


def bounds(folder: str, name: str) -> str:
    """The range of a requirement, the lower bound first."""
    [found] = [r for r in map(Requirement, project(folder)["dependencies"]) if r.name == name]
    return ",".join(sorted(map(str, found.specifier), reverse=True))


def test_the_page_has_each_supported_python_and_for_how_long() -> None:
    rows = re.findall(r"^\| (3\.\d+) \| (\w+) (\d+) \| (\w+) (\d+) \|$", PAGE, re.MULTILINE)
    classifiers = project("core")["classifiers"]
    assert [row[0] for row in rows] == re.findall(r"Python :: (3\.\d+)", "\n".join(classifiers))
    assert project("core")["requires-python"] == f">={rows[0][0]}"
    for _, month, year, last_month, last_year in rows:
        assert (last_month, int(last_year)) == (month, int(year) + 1)


def test_the_page_has_the_ranges_of_numpy_and_litert_that_the_packages_have() -> None:
    told = dict(re.findall(r"^\| `?([\w-]+)`? \| `([^`]+)` \|", PAGE, re.MULTILINE))
    assert told == {
        "numpy": bounds("core", "numpy"),
        "ai-edge-litert": bounds("plugins/litert_delegate", "ai-edge-litert"),
    }


def test_the_citation_can_be_read_and_says_the_licence_of_the_packages() -> None:
    found = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= found.keys()
    assert found["title"] == project("metapackage")["name"]
    assert found["license"] == project("core")["license"]
    assert "url" not in found, "the project has no public address yet"


def test_conduct_is_reported_by_a_way_that_is_there() -> None:
    text = (ROOT / "CODE_OF_CONDUCT.md").read_text("utf-8")
    assert "(SECURITY.md)" in text
    assert "## How to tell us" in (ROOT / "SECURITY.md").read_text("utf-8")
