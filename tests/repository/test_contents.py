"""A distribution that holds what is of the building machine, or what nobody needs, is told: each kind of it."""

from __future__ import annotations

import io
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from scripts import contents
from scripts.requirements import ROOT

TIME = (2020, 2, 2, 0, 0, 0)
Written = Callable[..., list[str]]


@pytest.fixture
def wheel(tmp_path: Path) -> Written:
    """Writes a wheel with one more member than a good one, and returns what is wrong with it."""

    def write(
        name: str, data: bytes = b"x = 1\n", mode: int = 0o644, when: tuple[int, int, int, int, int, int] = TIME
    ) -> list[str]:
        file = tmp_path / "oplet_thing-1-py3-none-any.whl"
        with zipfile.ZipFile(file, "w") as archive:
            for each, text, rights, time in (
                ("oplet_thing/__init__.py", b"", 0o644, TIME),
                ("oplet_thing-1.dist-info/METADATA", b"Name: oplet-thing\n", 0o644, TIME),
                (name, data, mode, when),
            ):
                info = zipfile.ZipInfo(each, time)
                info.external_attr = (0o100000 | rights) << 16
                archive.writestr(info, text)
        return [sentence.removeprefix(f"{file.name}: ") for sentence in contents.wrong(file)]

    return write


@pytest.mark.parametrize(
    "name", ["oplet_thing/a.py", "oplet_thing/py.typed", "oplet_thing/templates/tests/test_OP.py.in", "oplet_thing.pth"]
)
def test_what_a_wheel_is_for_may_be_in_it(wheel: Written, name: str) -> None:
    assert wheel(name) == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("oplet_thing/__pycache__/a.py", "is left over"),
        ("oplet_thing/a.py.orig", "is left over"),
        ("oplet_thing/.DS_Store", "is left over"),
        ("oplet_thing/tests/test_a.py", "is a test"),
        ("oplet_thing/notes.docx", "is of a kind that no wheel has had"),
        ("tests/a.py", "lies outside of oplet_thing"),
        ("oplet_thing/../../a.py", "is no path below a folder"),
        ("oplet_thing/b\u00e9.py", "has letters"),
        ("oplet_thing/__INIT__.py", "is there twice where case does not count"),
    ],
)
def test_a_name_that_should_not_be_there_is_told(wheel: Written, name: str, words: str) -> None:
    assert any(words in sentence for sentence in wheel(name))


@pytest.mark.parametrize("place", [str(ROOT), sys.prefix], ids=["clone", "python"])
def test_a_place_of_the_building_machine_is_told(wheel: Written, place: str) -> None:
    found = wheel("oplet_thing/a.so", b"\x00" + place.encode() + b"/x.c\x00")
    assert found
    assert "of the machine that built it" in found[0]


def test_sizes_rights_and_times_are_looked_at(wheel: Written) -> None:
    assert wheel("oplet_thing/a.py", b"#" * 1_000_001) == ["oplet_thing/a.py has 1,000,001 bytes"]
    assert wheel("oplet_thing/a.py", b"") == ["oplet_thing/a.py is empty"]
    assert wheel("oplet_thing/a.py", mode=0o666) == ["oplet_thing/a.py has the rights 666"]
    assert wheel("oplet_thing/a.py", when=(2026, 11, 27, 0, 0, 0)) == ["oplet_thing/a.py is of (2026, 11, 27, 0, 0, 0)"]


def test_a_source_distribution_has_tests_but_no_links_and_no_owner(tmp_path: Path) -> None:
    file = tmp_path / "oplet_thing-1.tar.gz"
    with tarfile.open(file, "w:gz") as archive:
        for name, kind, owner in (
            ("oplet_thing-1/tests/test_a.py", tarfile.REGTYPE, ""),
            ("oplet_thing-1/link.py", tarfile.SYMTYPE, ""),
            ("oplet_thing-1/build/a.py", tarfile.REGTYPE, ""),
            ("oplet_thing-1/mine.py", tarfile.REGTYPE, "ada"),
        ):
            info = tarfile.TarInfo(name)
            info.type, info.uname, info.size = kind, owner, 0 if kind == tarfile.SYMTYPE else 2
            archive.addfile(info, io.BytesIO(b"x\n"))
    found = [sentence.removeprefix(f"{file.name}: ") for sentence in contents.wrong(file)]
    assert "oplet_thing-1/link.py is a link or a device" in found
    assert "oplet_thing-1/build/a.py is left over" in found
    assert "oplet_thing-1/mine.py belongs to ada" in found
    assert not any("test_a.py" in sentence for sentence in found)
