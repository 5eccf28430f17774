"""What a change brings is told in a file of changelog.d, of which a release makes a section of CHANGELOG.md."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scripts import packages
from scripts.requirements import ROOT, tomllib
from tests.children import run_child

import oplet

FOLDER = ROOT / "changelog.d"
#: Bullets that stood under Unreleased before there were fragments; a release leaves none.
BEFORE_FRAGMENTS = 80


def settings() -> dict[str, Any]:
    tables = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return dict(tables["tool"]["towncrier"])


def unreleased() -> tuple[str, str]:
    """What stands under Unreleased: before the place of releases, and after it up to the next section."""
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    before, after = re.split(re.escape(settings()["start_string"]), text)
    return before.partition("\n## Unreleased\n")[2], re.split(r"^## ", after, flags=re.MULTILINE)[0]


def fragments() -> list[Path]:
    return sorted(path for path in FOLDER.iterdir() if path.name not in (".gitignore", "README.md"))


def test_a_fragment_says_of_which_kind_it_is_and_no_more_than_a_bullet() -> None:
    kinds = "|".join(settings()["fragment"])
    for path in fragments():
        assert re.fullmatch(rf"(\d+|\+[\w-]+)(\.\d+)?\.({kinds})\.md|(\d+|\+[\w-]+)\.({kinds})(\.\d+)?\.md", path.name), path.name
        text = path.read_text("utf-8")
        assert re.match(r"[^\s#*-]", text), f"{path.name} begins with the sentence itself; the release writes the bullet"
        assert text.endswith("\n")
        assert not re.search(r"^#|^\s*$", text[:-1], re.MULTILINE), f"{path.name} is one paragraph"
        assert max(map(len, text.splitlines())) <= 150, f"{path.name} is read in the changelog: break its lines"


def test_the_kinds_are_the_headings_that_the_changelog_knows() -> None:
    assert list(settings()["fragment"]) == ["added", "changed", "deprecated", "removed", "fixed", "security"]


def test_nobody_writes_under_unreleased_any_more() -> None:
    before, after = unreleased()
    assert "`changelog.d/`" in before
    assert not re.search(r"^(- |### )", before, re.MULTILINE)
    bullets = len(re.findall(r"^- ", after, re.MULTILINE))
    assert bullets <= BEFORE_FRAGMENTS, "a change is told in a file of changelog.d: see CONTRIBUTING.md"


def test_a_release_makes_a_section_of_the_fragments_and_leaves_none(tmp_path: Path) -> None:
    pytest.importorskip("towncrier")
    for name in ("pyproject.toml", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(FOLDER, tmp_path / FOLDER.name)
    (tmp_path / FOLDER.name / "7.fixed.md").write_text("The seventh.\nOn two lines.\n")
    (tmp_path / FOLDER.name / "+eighth.added.md").write_text("The eighth.\n")
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    command = [sys.executable, "-m", "towncrier", "build", "--yes", "--version", "9.8.7", "--date", "2026-11-30"]
    run_child(command, cwd=tmp_path)
    text = (tmp_path / "CHANGELOG.md").read_text("utf-8")
    heads = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert heads[:2] == ["Unreleased", "9.8.7 — 2026-11-30"]
    section = text.partition("## 9.8.7")[2].partition("\n## ")[0]
    assert "\n### Added\n" in section
    assert "\n- The eighth.\n" in section
    assert "\n### Fixed\n\n- The seventh.\n  On two lines. (#7)\n" in section
    assert section.index("The eighth") < section.index("The seventh")
    assert [path.name for path in (tmp_path / FOLDER.name).iterdir() if path.suffix == ".md" and path.name != "README.md"] == []


def test_no_tag_is_built_while_fragments_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "changelog.d").mkdir()
    (tmp_path / "CHANGELOG.md").write_text(f"## Unreleased\n\n## {oplet.__version__} — 2026-11-30\n")
    (tmp_path / "changelog.d" / "7.fixed.md").write_text("Seventh.\n")
    monkeypatch.setattr(packages, "ROOT", tmp_path)
    monkeypatch.setattr(packages, "has_ziglang", lambda: False)
    with pytest.raises(SystemExit, match=r"changelog\.d has fragments that no section tells yet, such as 7\.fixed\.md"):
        packages.main([str(tmp_path / "dist"), "--tag", f"v{oplet.__version__}"])
    (tmp_path / "changelog.d" / "7.fixed.md").unlink()
    with pytest.raises(SystemExit, match="ziglang"):
        packages.main([str(tmp_path / "dist"), "--tag", f"v{oplet.__version__}"])
