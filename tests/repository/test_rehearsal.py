"""The rehearsal of a release takes a stranger's first steps with what was built, and fails where they fail."""

from __future__ import annotations

import json
import platform
import sys
import zipfile
from pathlib import Path

import pytest
from scripts import packages
from scripts.requirements import ROOT
from tests.wheelhouse import wheel

rehearsal = pytest.importorskip("scripts.rehearsal", reason="pip install cyclonedx-python-lib", exc_type=ImportError)


def row(**said: object) -> object:
    return rehearsal.Row("3.11.7", "core", "a model answers", "ok", 0.31)._replace(**said)


def test_the_table_says_what_was_done_how_it_went_and_what_came_with_it() -> None:
    installed = row(step="pip install oplet", packages=("numpy==2.4.6", "oplet==1", "oplet-core==1"), megabytes=61.84)
    text = rehearsal.table([installed, row(said="sees\nseven")])
    head, first, second = (line.split("  ") for line in text.splitlines())
    assert [word.strip() for word in head if word][:4] == ["Python", "steps", "step", "verdict"]
    assert [word.strip() for word in first if word] == ["3.11.7", "core", "pip install oplet", "ok", "0.3", "2+1", "61.8"]
    assert [word.strip() for word in second if word] == ["3.11.7", "core", "a model answers", "ok", "0.3", "sees seven"]


def test_a_file_that_an_index_would_refuse_is_told(tmp_path: Path) -> None:
    pytest.importorskip("twine", reason="pip install twine")
    (tmp_path / "core").mkdir()
    (tmp_path / "core" / "oplet_core-0.1.0-py3-none-any.whl").write_bytes(b"no archive")
    assert "not a zip file" in rehearsal.check(tmp_path)


def test_a_python_that_is_not_there_is_a_failure_of_its_own(tmp_path: Path) -> None:
    told = list(rehearsal.walk(str(tmp_path / "python9"), "http://127.0.0.1:1", ["core", "oplet"]))
    assert [(each.steps, each.verdict) for each in told] == [("core", "failed"), ("oplet", "failed")]
    assert "python9" in told[0].said


@pytest.mark.parametrize(
    ("name", "compiled", "native"),
    [
        ("linux-aarch64", ["linux-aarch64"], ["aarch64-linux-gnu.2.17"]),
        ("musl-x86_64", ["musl-x86_64"], ["x86_64-linux-musl"]),
        ("macos-arm64", ["macos-arm64"], []),
        ("plan9-mips", [], []),
    ],
)
def test_a_platform_has_one_name_though_compilers_have_several(name: str, compiled: list[str], native: list[str]) -> None:
    plugins = ROOT / "plugins"
    assert packages.target_for(plugins / "compiled_ops", name) == compiled
    assert packages.target_for(plugins / "native_ops", name) == native
    assert packages.target_for(plugins / "atan_op", name) == []
    assert packages.here_and(plugins / "compiled_ops", [name]) == ["", *compiled]


@pytest.mark.environment
def test_a_stranger_abroad_is_given_what_that_platform_takes_and_runs_it_with_its_own_python(tmp_path: Path) -> None:
    # This machine's Python stands in for the other one's: only what pip may take for it is another platform's.
    rehearsal.build(tmp_path / "dist", ["core", "metapackage", "builtin_ops"])
    rehearsal.index(tmp_path)
    land = rehearsal.musl(sys.executable)._replace(name="here", tags=(f"linux_{platform.machine()}",))
    with rehearsal.served(tmp_path) as address:
        (tmp_path / "place").mkdir()
        stranger = rehearsal.Abroad(land, address, tmp_path / "place", "oplet")
        row = stranger.install("oplet-core", "--no-deps")
        assert (row.verdict, row.packages) == ("ok", (f"oplet-core=={packages.version()}",)), row.said
        assert row.python == f"{sys.version_info[0]}.{sys.version_info[1]} here"
        assert (tmp_path / "place" / "site" / "oplet" / "__init__.py").is_file()
        refused = stranger.install("numpy")
        assert refused.verdict == "no wheel"  # none is tagged for bare Linux


def test_a_platform_that_cannot_be_had_is_a_failure_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("cyclonedx", reason="it writes the bill of materials, and is not in requirements-test.txt")

    def none(architecture: str) -> None:
        raise rehearsal.Unavailable(f"no emulator for {architecture}")

    monkeypatch.setattr(rehearsal, "environment", none)
    monkeypatch.setattr(rehearsal, "check", lambda dist: "")
    (tmp_path / "dist" / "core").mkdir(parents=True)
    with zipfile.ZipFile(tmp_path / "dist" / "core" / "oplet-1-py3-none-any.whl", "w") as archive:
        info = zipfile.ZipInfo("oplet-1.dist-info/METADATA", (2020, 2, 2, 0, 0, 0))
        info.external_attr = 0o100644 << 16
        stated = "Name: oplet\nVersion: 1\nSummary: s\nLicense-Expression: MIT\nRequires-Python: >=3.10\n"
        archive.writestr(info, stated)
    arguments = ["--built", "--emulated", "aarch64-neon", "--musl", str(tmp_path / "no-python"), "--steps", "lowest-numpy"]
    monkeypatch.setattr(rehearsal, "walk", lambda *_: iter(()))
    assert rehearsal.main([str(tmp_path), *arguments]) == 1
    said = capsys.readouterr().out
    assert "no emulator for aarch64" in said
    assert "no-python" in said
    assert "contents" in said


@pytest.mark.environment
def test_a_second_build_elsewhere_has_the_same_bytes_and_one_that_has_not_is_named(tmp_path: Path) -> None:
    rehearsal.build(tmp_path / "dist", ["metapackage", "atan_op"])
    assert rehearsal.rebuild(tmp_path, only=["metapackage", "atan_op"]) == ""
    files = {path.relative_to(tmp_path / "again").as_posix() for path in (tmp_path / "again").glob("*/*")}
    assert files == {path.relative_to(tmp_path / "dist").as_posix() for path in (tmp_path / "dist").glob("*/*")}
    assert len(files) == 4
    with zipfile.ZipFile(next((tmp_path / "dist" / "plugins").glob("*.whl")), "a") as archive:
        archive.writestr("oplet_atan_op/today.txt", "Friday")
    found = rehearsal.rebuild(tmp_path, only=["metapackage", "atan_op"])
    assert found == "plugins/oplet_atan_op-0.1.0-py3-none-any.whl differs in oplet_atan_op/today.txt"


@pytest.mark.environment
def test_what_the_files_hold_is_listed_and_what_they_should_not_is_told(tmp_path: Path) -> None:
    rehearsal.build(tmp_path / "dist", ["atan_op"])
    assert rehearsal.look(tmp_path) == ""
    assert "  oplet_atan_op/__init__.py\n" in (tmp_path / "contents.txt").read_text("utf-8")


@pytest.mark.environment
def test_a_stranger_installs_oplet_and_the_command_and_the_core_alone_says_what_it_lacks(tmp_path: Path) -> None:
    pytest.importorskip("twine", reason="pip install twine")
    rehearsal.build(tmp_path / "dist", ["core", "metapackage", "builtin_ops", "predictor", "tools"])
    assert rehearsal.main([str(tmp_path), "--built", "--steps", "oplet", "core"]) == 0, (tmp_path / "rehearsal.txt").read_text()
    told = json.loads((tmp_path / "rehearsal.json").read_text("utf-8"))
    assert len(told["files"]) == 10
    assert {each["verdict"] for each in told["rows"]} == {"ok"}
    ours = {
        (each["steps"], each["step"]): {name.partition("==")[0] for name in each["packages"] if name.startswith("oplet")}
        for each in told["rows"]
    }
    assert ours["oplet", "pip install oplet"] == {"oplet", "oplet-builtin-ops", "oplet-core"}
    assert ours["oplet", "pip install oplet[cli]"] == {"oplet-predictor", "oplet-tools"}
    assert ours["core", "pip install oplet-core"] == {"oplet-core"}
    [sentence] = [each["said"] for each in told["rows"] if each["step"] == "the sentence"]
    assert "pip install " in sentence
    assert "oplet-builtin-ops" in sentence


@pytest.mark.environment
def test_a_package_of_the_project_from_elsewhere_is_a_failure_and_ends_the_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rehearsal.build(tmp_path / "dist", ["core", "metapackage"])
    rehearsal.index(tmp_path)
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel("builtin_ops").parent))
    with rehearsal.served(tmp_path) as address:
        [taken] = rehearsal.walk(sys.executable, address, ["oplet"])
    assert taken.verdict == "failed"
    assert taken.said.startswith("not of this rehearsal: file:")
    assert "builtin_ops" in taken.said
