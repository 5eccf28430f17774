"""Nothing is required whose licence does not fit Apache-2.0; what is required has bounds, and versions that passed together."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from email.message import Message
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from scripts import constraints, licences, requirements
from scripts.licences import FITS, fits, licence_of
from scripts.requirements import DEVELOPMENT, ROOT, RUN_TIME, wanted


def made(text: str = "", **fields: str | list[str]) -> Any:
    """A distribution with these fields of metadata, and a licence file of this text."""
    metadata = Message()
    for name, values in fields.items():
        for value in [values] if isinstance(values, str) else values:
            metadata[name.replace("_", "-")] = value
    place = SimpleNamespace(read_text=lambda *_, **__: text)
    file = SimpleNamespace(name="LICENSE.txt", parts=("x-1.dist-info", "LICENSE.txt"), locate=lambda: place)
    return SimpleNamespace(metadata=metadata, files=[file] if text else None, version="1", requires=None)


def test_all_that_is_installed_fits() -> None:
    assert licences.problems() == []


@pytest.mark.environment
@pytest.mark.skipif("OPLET_PROGRAMS" not in os.environ, reason="scripts/programs.sh has made no environment")
def test_so_does_what_the_programs_stand_on() -> None:
    done = subprocess.run(
        [os.environ["OPLET_PROGRAMS"], "-m", "scripts.licences"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "librosa" in done.stdout


def test_the_page_is_what_the_script_makes() -> None:
    assert licences.PAGE.read_text("utf-8") == licences.page(), "run python -m scripts.licences --write"


@pytest.mark.parametrize(
    ("distribution", "licence"),
    [
        (made(License_Expression="mit or apache-2.0", Classifier="License :: OSI Approved :: GNU General Public License (GPL)"), "MIT OR Apache-2.0"),
        (made(Classifier=["License :: OSI Approved", "License :: OSI Approved :: MIT License"], License="whatever"), "MIT"),
        (made(Classifier=["License :: OSI Approved :: BSD License", "License :: OSI Approved :: GNU General Public License v3 (GPLv3)"]), "BSD-3-Clause AND GPL-3.0-only"),
        (made(Classifier="License :: Other/Proprietary License"), "LicenseRef-Other-Proprietary-License"),
        (made(License="Apache 2.0"), "Apache-2.0"),
        (made(License="GPL-3.0-or-later"), "GPL-3.0-or-later"),
        (made(License="Copyright (c) Somebody\nRedistribution and use in source and binary\nforms, with or without"), "BSD-3-Clause"),
        (made("GNU GENERAL PUBLIC\n LICENSE Version 2"), "GPL-2.0-or-later"),
        (made("Permission is hereby granted, free of charge, to any person obtaining a copy"), "MIT"),
        (made(License="as you like"), ""),
        (made(), ""),
    ],
)  # fmt: skip
def test_a_licence_is_what_a_package_says_and_else_what_its_files_say(distribution: Any, licence: str) -> None:
    assert licence_of(distribution) == licence


@pytest.mark.parametrize(
    ("expression", "verdict"),
    [
        ("MIT", True),
        ("MIT AND GPL-2.0-only", False),
        ("MIT OR GPL-2.0-only", True),
        ("GPL-2.0-only OR EPL-1.0", False),
        ("(MIT OR GPL-2.0-only) AND BSD-3-Clause", True),
        ("MIT AND (GPL-2.0-only OR LGPL-2.1-only)", False),
        ("BSD-2-Clause AND Apache-2.0 WITH LLVM-exception", True),
        ("GPL-3.0-only WITH GCC-exception-3.1", False),
        ("MPL-2.0", False),
        ("LicenseRef-Own", False),
        ("", False),
        ("MIT)", False),
        ("(MIT", False),
    ],
)
def test_a_choice_must_consist_of_licences_that_fit(expression: str, verdict: bool) -> None:
    assert fits(expression, FITS[RUN_TIME]) is verdict


def test_tools_may_ask_more_of_those_who_change_them_but_none_may_be_under_the_gpl() -> None:
    assert fits("MPL-2.0", FITS[DEVELOPMENT])
    assert not any(
        fits(f"{name}-{version}", FITS[DEVELOPMENT])
        for name in ("GPL", "AGPL")
        for version in ("2.0-only", "3.0-only", "3.0-or-later")
    )
    assert FITS[RUN_TIME] < FITS[DEVELOPMENT]


@pytest.mark.parametrize(
    ("distribution", "words"),
    [
        (made(), "Nothing says which licence newcomer 1 has; look at its source, and add it to EXCEPTIONS"),
        (made(License_Expression="GPL-2.0-only"), "newcomer 1 is required at run time and has the licence GPL-2.0-only"),
    ],
)
def test_a_newcomer_that_does_not_fit_is_told_with_what_to_do(
    distribution: Any, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    need = requirements.Wanted(Requirement("newcomer>=1"), RUN_TIME, "oplet")
    monkeypatch.setattr(licences, "wanted", lambda: [need])
    monkeypatch.setattr(licences, "installed", lambda requirements: {r.name: distribution for r in requirements})
    said = licences.problems()
    assert words in said[0]
    assert any("newcomer is required and not in USES" in text for text in said)
    assert any("typer is in USES" in text for text in said)


def test_what_is_required_leads_to_all_that_it_requires(monkeypatch: pytest.MonkeyPatch) -> None:
    requires = {
        "a": ["b[more]; python_version > '3'", "never; python_version < '3'"],
        "b": ["c; extra == 'more'", "d; extra == 'less'"],
        "c": ["a", "not-installed"],
        "d": [],
        "never": [],
    }

    def distribution(name: str) -> Any:
        if name not in requires:
            raise requirements.metadata.PackageNotFoundError(name)
        return SimpleNamespace(requires=requires[name], version="1")

    monkeypatch.setattr(requirements.metadata, "distribution", distribution)
    assert list(requirements.installed([Requirement("a")])) == ["a", "b", "c"]


def test_what_only_developers_install_has_bounds_on_both_sides() -> None:
    loose = [
        f"{need.by}: {need.requirement}"
        for need in wanted()
        if need.by.endswith(".txt") and not {spec.operator for spec in need.requirement.specifier} & {"<", "=="}
    ]
    assert loose == []


def test_the_versions_that_passed_together_keep_the_bounds() -> None:
    pins = constraints.pinned((ROOT / "constraints.txt").read_text("utf-8"))
    assert len(pins) > 40
    bounds = {}
    for need in wanted():
        if need.by != "requirements-programs.txt":
            bounds.setdefault(canonicalize_name(need.requirement.name), []).append(need.requirement)
    wrong = []
    for pin in pins:
        [version] = [spec.version for spec in pin.specifier]
        assert re.fullmatch(r'python_version == "3\.\d+"', str(pin.marker)), pin
        wrong += [
            f"{pin} and {need}" for need in bounds.get(pin.name, ()) if not need.specifier.contains(version, prereleases=True)
        ]
    assert wrong == []
    assert not any(Version(next(iter(pin.specifier)).version).is_devrelease for pin in pins)


def test_constraints_of_other_pythons_stay_when_those_of_this_one_are_written_anew() -> None:
    mine = f'python_version == "3.{sys.version_info[1]}"'
    new = constraints.lines(f'# a head\nnumpy==1.0 ; {mine}\nnumpy==1.5 ; python_version == "3.99"\n')
    assert new[-1] == 'numpy==1.5 ; python_version == "3.99"'
    assert f"numpy==1.0 ; {mine}" not in new
    assert sum(line.startswith("numpy==") for line in new) == 2


@pytest.mark.parametrize("file", ["constraints.txt", *(path.name for path in Path(requirements.ROOT).glob("requirements-*.txt"))])
def test_no_file_of_requirements_names_an_index(file: str) -> None:
    text = (ROOT / file).read_text("utf-8")
    assert not re.search(r"://|--(extra-)?index|--find-links|--trusted", text)
