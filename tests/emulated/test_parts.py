"""The parts that need no emulator: wheels as pip installs them, crashes that end no sweep, differences that are seen."""

from __future__ import annotations

import json
import os
import sys
import zipfile
from pathlib import Path

import pytest
from scripts.emulated import debian
from scripts.emulated.__main__ import main
from scripts.emulated.debian import Unavailable
from scripts.emulated.environment import unpacked
from scripts.emulated.levels import LEVELS
from tests.emulated import test_cases
from tests.emulated.test_cases import answers, differs
from tests.emulated.ways import extra_wheels
from tests.recorded_cases import Case

INTEGERS = {"verdict": "exact", "detail": "", "answers": ["other int8[2] aa", "float float32[2] bb"]}


def test_a_wheel_is_unpacked_as_pip_installs_it(tmp_path: Path) -> None:
    wheel = tmp_path / "made-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in (
            "made/__init__.py",
            "made-1.0.data/platlib/made/library.so",
            "made-1.0.data/scripts/made",
            "made-1.0.dist-info/METADATA",
        ):
            archive.writestr(name, name)
    folder = unpacked(wheel, tmp_path / "site")
    found = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    assert found == ["made-1.0.dist-info/METADATA", "made/__init__.py", "made/library.so"]


def test_extra_wheels_are_those_of_the_architecture_and_of_any(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for tag in ("manylinux_2_17_aarch64", "manylinux_2_17_x86_64", "any"):
        (tmp_path / f"made-1.0-py3-none-{tag}.whl").touch()
    monkeypatch.setenv("EMULATED_WHEELS", os.pathsep.join([str(tmp_path / "made-*.whl"), str(tmp_path / "none-*.whl")]))
    assert [wheel.stem.rpartition("none-")[2] for wheel in extra_wheels("aarch64")] == ["any", "manylinux_2_17_aarch64"]
    monkeypatch.delenv("EMULATED_WHEELS")
    assert extra_wheels("aarch64") == []


@pytest.mark.parametrize(
    ("got", "differing"),
    [
        (INTEGERS, False),
        ({**INTEGERS, "answers": ["other int8[2] aa", "float float32[2] cc"]}, False),
        ({**INTEGERS, "answers": ["other int8[2] ab", "float float32[2] bb"]}, True),
        ({**INTEGERS, "answers": ["other int8[2] aa"]}, True),
        ({**INTEGERS, "verdict": "near"}, True),
    ],
)
def test_another_grade_differs_and_another_integer_and_not_the_bits_of_a_float(got: test_cases.Told, differing: bool) -> None:
    assert bool(differs(Case(Path("ops/made.zip"), "one", {}), got, INTEGERS)) is differing


def test_a_case_that_ends_the_process_is_a_crash_and_the_next_ones_are_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import json, os, sys\n"
        "for path, name in json.load(sys.stdin)['cases']:\n"
        "    if name == 'bad':\n"
        "        os._exit(9)\n"
        "    print(json.dumps({'verdict': name}), flush=True)\n"
    )
    monkeypatch.setattr(test_cases, "PROGRAM", program)
    cases = [Case(Path("ops/made.zip"), name, {}) for name in ("one", "bad", "two")]
    told = answers([sys.executable], os.environ, cases)
    assert [answer["verdict"] for answer in told] == ["one", "crash", "two"]
    with pytest.raises(AssertionError, match="no case was answered"):
        answers([sys.executable], os.environ, cases[1:2])


def test_where_there_are_no_packages_of_a_distribution_the_reason_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(debian.shutil, "which", lambda name: None)
    with pytest.raises(Unavailable, match="there is no apt-get here"):
        debian.host()
    assert main(["--", "-c", "pass"]) == 1
    assert capsys.readouterr().err.startswith("There is no aarch64-neon here: emulated environments are made of")


def test_levels_of_one_architecture_have_what_the_lower_one_lacks() -> None:
    for architecture in ("aarch64", "x86_64"):
        lower, upper = (level for level in LEVELS.values() if level.architecture == architecture)
        assert lower.lacks & upper.features
        assert lower.features.isdisjoint(lower.lacks)
        assert lower.by_settings == upper.by_settings == (architecture == "x86_64")
    assert json.dumps(LEVELS["x86_64-v3"].settings())
