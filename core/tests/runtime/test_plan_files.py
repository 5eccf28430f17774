"""What a stored plan depends on: the source files, and where packages are imported from."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from oplet.runtime.memory import plan_files
from oplet.runtime.memory.plan_files import Stamp, are_unchanged


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The one file of the package `a_package`, which can be imported."""
    monkeypatch.setattr(plan_files, "_looked", {})
    monkeypatch.syspath_prepend(str(tmp_path))
    made = tmp_path / "a_package" / "__init__.py"
    made.parent.mkdir()
    made.write_text("one = 1\n")
    return made


def stamp(path: Path) -> Stamp:
    status = path.stat()
    return str(path), status.st_size, status.st_mtime_ns


def test_sources_that_changed_make_a_plan_worthless(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_files, "_SECONDS", -1.0)
    stamps, packages = [stamp(source)], {"a_package": str(source)}
    *_, changed = stamps[0]
    assert are_unchanged(stamps, packages)
    source.write_text("one = 2\n")
    os.utime(source, ns=(changed, changed + 1))
    assert not are_unchanged(stamps, packages), "of the same size"
    source.write_text("one = 11\n")
    os.utime(source, ns=(changed, changed))
    assert not are_unchanged(stamps, packages), "of the same time"
    source.write_text("one = 1\n")
    os.utime(source, ns=(changed, changed))
    assert are_unchanged(stamps, packages)
    assert not are_unchanged([*stamps, (str(source.with_name("gone.py")), 1, 1)], packages)
    assert not are_unchanged(stamps, {"a_package": str(tmp_path / "elsewhere.py")})
    assert not are_unchanged(stamps, {"another_package": str(source)})


def test_for_a_moment_a_file_is_not_looked_at_again_but_for_another_stamp(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_files, "_SECONDS", 1000.0)
    monkeypatch.setattr(plan_files, "_since", time.monotonic())
    before = stamp(source)
    assert are_unchanged([before], {})
    source.write_text("one = 11\n")
    assert are_unchanged([before], {}), "this process has its code anyway"
    assert are_unchanged([stamp(source)], {})
    assert not are_unchanged([before], {})
    source.unlink()
    monkeypatch.setattr(plan_files, "_SECONDS", -1.0)
    assert not are_unchanged([before], {})
