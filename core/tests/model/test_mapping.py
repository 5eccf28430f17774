"""Files of models that several open at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from oplet.model import reading
from oplet.model.reading import map_file


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "model"
    made.write_bytes(b"abc")
    return made


@pytest.mark.parametrize("use_mmap", [True, False])
def test_all_who_open_a_file_share_what_was_computed_from_it(use_mmap: bool, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_is_settled", lambda status: True)
    first = map_file(path, use_mmap=use_mmap)
    shared = first.shared_values
    assert shared is not None
    assert map_file(path, use_mmap=use_mmap) is first
    assert first.shared_values is shared
    path.with_name("new").write_bytes(b"abcd")
    path.with_name("new").replace(path)
    other = map_file(path, use_mmap=use_mmap)
    assert bytes(other.view) == b"abcd"
    assert other.shared_values not in (None, shared)


def test_a_file_that_may_change_unnoticed_shares_nothing_until_it_cannot(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_is_settled", lambda status: False)
    mapped, read = map_file(path), map_file(path, use_mmap=False)
    assert mapped.shared_values is None
    assert map_file(path) is mapped, "its pages are the file's, whatever is in it"
    assert map_file(path, use_mmap=False) is not read, "what was read may be of before a change"
    monkeypatch.setattr(reading, "_is_settled", lambda status: True)
    assert map_file(path) is mapped
    assert mapped.shared_values is not None
