"""Packages of the last release are tested against the changed core, where their bounds allow it, and apart from this repository."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts import changes, downstream
from scripts.requirements import ROOT
from tests.children import run_child


def package(folder: Path, needs: str) -> Path:
    folder.mkdir(parents=True)
    (folder / "pyproject.toml").write_text(f'[project]\nname = "oplet-x-op"\ndependencies = ["numpy>=1", "{needs}"]\n')
    return folder


def test_a_package_that_does_not_allow_this_version_is_not_asked(tmp_path: Path) -> None:
    folder = package(tmp_path / "x", "oplet-core>=0.1,<0.2")
    assert downstream.refusal(folder, "0.1.7") == ""
    assert downstream.refusal(folder, "0.2.0.dev1").startswith("oplet-x-op asks for oplet-core<0.2,>=0.1, and this is 0.2.0.dev1")


def test_what_the_tests_ask_for_has_the_bounds_of_the_requirements() -> None:
    found = downstream.tools((ROOT / "requirements-test.txt").read_text("utf-8"))
    assert len(found) == 3
    assert all("<" in line and "#" not in line for line in found)


def test_the_packages_and_what_they_stand_on_are_here() -> None:
    for name in downstream.PINNED:
        assert downstream.refusal(ROOT / "plugins" / name, downstream.version()) == ""
    for folder in downstream.CHANGED:
        assert (ROOT / folder / "pyproject.toml").is_file()


def test_tests_lie_apart_with_the_modules_that_tests_share_and_no_conftest(tmp_path: Path) -> None:
    for name in downstream.PINNED:
        tests = downstream.writes_apart(ROOT, name, tmp_path / name)
        assert {path.name for path in tests.glob("test_*.py")} == {
            p.name for p in (ROOT / "plugins" / name / "tests").glob("test_*.py")
        }
        assert (tmp_path / name / "tests" / "budgets.py").is_file()
        assert not list((tmp_path / name).rglob("conftest.py"))
        assert not list((tmp_path / name).rglob("src"))


def git(folder: Path, *arguments: str) -> None:
    run_child(["git", "-c", "user.name=A", "-c", "user.email=a@example.org", *arguments], cwd=folder)


def test_the_packages_are_those_of_the_last_release_and_of_the_base_before_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "ROOT", tmp_path)
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    for number in range(3):
        (tmp_path / "file.txt").write_text(str(number))
        git(tmp_path, "add", "file.txt")
        git(tmp_path, "commit", "--quiet", "--message", str(number))
        if number == 0:
            assert changes.last_release() is None
            git(tmp_path, "tag", "v0.1.0")
    git(tmp_path, "tag", "v0.1.1")  # what is released now is held against the one before
    assert changes.last_release() == "v0.1.0"
    changes.export("v0.1.0", tmp_path / "tree")
    assert (tmp_path / "tree" / "file.txt").read_text() == "0"

    revisions: list[str] = []
    monkeypatch.setattr(downstream, "_run", lambda packages, revision: revisions.append(revision) or 0)
    for release, base in (("v0.1.0", "abc"), (None, "abc")):
        monkeypatch.setattr(downstream, "last_release", lambda release=release: release)
        monkeypatch.setattr(downstream, "base", lambda base=base: base)
        assert downstream.main([]) == 0
    assert revisions == ["v0.1.0", "abc"]
    monkeypatch.setattr(downstream, "base", lambda: None)
    with pytest.raises(SystemExit, match="neither a release nor a commit before"):
        downstream.main([])
