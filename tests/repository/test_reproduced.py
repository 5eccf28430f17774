"""Two builds of a release are compared to the byte, and what differs is named by file and member."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import pytest
from scripts import reproduced


def a_wheel(file: Path, texts: dict[str, str], when: tuple[int, int, int, int, int, int] = (2020, 2, 2, 0, 0, 0)) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in texts.items():
            archive.writestr(zipfile.ZipInfo(name, when), text)


def an_sdist(file: Path, texts: dict[str, str], *, owner: str = "", packed: int = 0) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for name, text in texts.items():
            info = tarfile.TarInfo(name)
            info.size, info.uname = len(text), owner
            archive.addfile(info, io.BytesIO(text.encode()))
    file.write_bytes(gzip.compress(raw.getvalue(), mtime=packed))


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("one", "other"):
        a_wheel(tmp_path / name / "core" / "p-1-py3-none-any.whl", {"p/a.py": "1", "p/b.py": "2"})
        an_sdist(tmp_path / name / "core" / "p-1.tar.gz", {"p-1/a.py": "1"})
    return tmp_path / "one", tmp_path / "other"


def test_the_same_bytes_are_no_difference(folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert reproduced.differences(*folders) == []
    assert reproduced.main([*map(str, folders)]) == 0
    assert capsys.readouterr().out == "2 files have the same bytes.\n"


def test_members_that_differ_are_named(folders: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    wheel, sdist = folders[1] / "core" / "p-1-py3-none-any.whl", folders[1] / "core" / "p-1.tar.gz"
    a_wheel(wheel, {"p/a.py": "1", "p/b.py": "3"})
    an_sdist(sdist, {"p-1/a.py": "1"}, owner="somebody")
    assert reproduced.main([*map(str, folders)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "core/p-1-py3-none-any.whl differs in p/b.py",
        "core/p-1.tar.gz differs in p-1/a.py",
    ]


def test_times_order_and_packing_count_too(folders: tuple[Path, Path]) -> None:
    wheel, sdist = folders[1] / "core" / "p-1-py3-none-any.whl", folders[1] / "core" / "p-1.tar.gz"
    a_wheel(wheel, {"p/b.py": "2", "p/a.py": "1"})
    an_sdist(sdist, {"p-1/a.py": "1"}, packed=7)
    assert reproduced.differences(*folders) == [
        "core/p-1-py3-none-any.whl differs in the order or the packing of its members",
        "core/p-1.tar.gz differs in the head of gzip",
    ]
    a_wheel(wheel, {"p/a.py": "1", "p/b.py": "2"}, (2026, 1, 1, 0, 0, 0))
    assert reproduced.differences(*folders)[0] == "core/p-1-py3-none-any.whl differs in p/a.py, p/b.py"


def test_a_file_that_one_of_them_lacks_is_named_and_nothing_to_compare_is_no_success(
    folders: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folders[1] / "core" / "p-1.tar.gz").unlink()
    assert reproduced.differences(*folders) == [f"core/p-1.tar.gz is only in {folders[0]}"]
    (tmp_path / "empty").mkdir()
    assert reproduced.main([str(tmp_path / "empty"), str(tmp_path / "empty")]) == 1
    assert "has no distributions" in capsys.readouterr().err
