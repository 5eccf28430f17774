"""Files that grow: what was appended is there, one process writes, links are not followed, and complete files take their place."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from oplet.toolkit import OwnFolder
from oplet_tools.running.many.keeping import appending
from oplet_tools.running.many.keeping.appending import AppendedFile, move_into_place, remove_folder


def test_what_is_appended_is_there_at_once_and_can_be_cut(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    file = AppendedFile(OwnFolder(tmp_path), "rows")
    file.append(b"one\n")
    file.append(b"two\n")
    assert path.read_bytes() == b"one\ntwo\n"
    file.cut(4)
    file.append(b"three\n")
    file.close()
    file.close()
    again = AppendedFile(OwnFolder(tmp_path), "rows")
    again.append(b"four\n")
    again.close()
    assert path.read_bytes() == b"one\nthree\nfour\n"


def test_what_is_appended_outlives_the_process(tmp_path: Path) -> None:
    code = """
import os, signal, sys
from oplet.toolkit import OwnFolder
from oplet_tools.running.many.keeping.appending import AppendedFile
file = AppendedFile(OwnFolder(sys.argv[1]), "rows")
file.append(b"here")
os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
"""
    done = subprocess.run([sys.executable, "-c", code, tmp_path], check=False)
    assert done.returncode not in (0, 1)  # it came to the line that kills it
    assert (tmp_path / "rows").read_bytes() == b"here"
    AppendedFile(OwnFolder(tmp_path), "rows").close()  # nobody holds it any more


def test_it_is_synchronized_while_it_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    now = [0.0]
    monkeypatch.setattr(appending.os, "fsync", synced.append)
    monkeypatch.setattr(appending.time, "monotonic", lambda: now[0])
    file = AppendedFile(OwnFolder(tmp_path), "rows")
    for number in range(12):
        now[0] = number / 4
        file.append(b"x")
    assert len(synced) == 3
    file.close()
    assert len(synced) == 4


def test_one_process_writes_a_file(tmp_path: Path) -> None:
    file = AppendedFile(OwnFolder(tmp_path), "rows")
    with pytest.raises(BlockingIOError, match="another process is writing it"):
        AppendedFile(OwnFolder(tmp_path), "rows")
    file.close()
    AppendedFile(OwnFolder(tmp_path), "rows").close()


@pytest.mark.skipif(sys.platform == "win32", reason="needs links and pipes")
def test_links_folders_and_pipes_are_refused(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("precious")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link to folder").symlink_to(tmp_path / "folder")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "folder", "pipe"):
        with pytest.raises(OSError, match=name):
            AppendedFile(OwnFolder(tmp_path), name)
    for name in ("target", "link to folder"):
        with pytest.raises(PermissionError, match="into which the user alone may write"):
            OwnFolder(tmp_path / name).make()
    OwnFolder(tmp_path / "folder").make()
    assert (tmp_path / "target").read_text() == "precious"


@pytest.mark.skipif(sys.platform == "win32", reason="needs links and permissions")
def test_a_complete_file_takes_the_place_and_the_permissions_of_the_old_one(tmp_path: Path) -> None:
    old, new, link = tmp_path / "old", tmp_path / "new", tmp_path / "link"
    old.write_text("old")
    old.chmod(0o640)
    link.symlink_to(old)
    new.write_text("new")
    move_into_place(new, old)
    assert old.read_text() == "new"
    assert stat.S_IMODE(old.stat().st_mode) == 0o640
    new.write_text("newer")
    move_into_place(new, link)
    assert (old.read_text(), link.read_text(), link.is_symlink()) == ("new", "newer", False)
    new.write_text("x")
    with pytest.raises(OSError) as raised:
        move_into_place(new, tmp_path / "nowhere" / "x")
    assert raised.value.filename == str(tmp_path / "nowhere" / "x")


@pytest.mark.skipif(sys.platform == "win32", reason="needs permissions")
@pytest.mark.parametrize("umask", [0o022, 0o002, 0o077])
def test_a_complete_file_has_the_permissions_of_any_new_one(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        file = AppendedFile(OwnFolder(tmp_path), "rows")
        assert stat.S_IMODE((tmp_path / "rows").stat().st_mode) == 0o600
        file.close()
        move_into_place(tmp_path / "rows", tmp_path / "done")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "done").stat().st_mode) == 0o666 & ~umask
    assert os.listdir(tmp_path) == ["done"]


def test_a_file_in_another_s_place_is_told(tmp_path: Path) -> None:
    file = AppendedFile(OwnFolder(tmp_path), "rows")
    file.ensure_in_place()
    (tmp_path / "other").write_text("not mine")
    os.replace(tmp_path / "other", tmp_path / "rows")
    with pytest.raises(FileExistsError, match="another file has taken its place"):
        file.ensure_in_place()
    file.close()


def test_only_what_is_named_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / name).write_text("")
    remove_folder(folder, ["a", "c"])
    assert os.listdir(folder) == ["b"]
    remove_folder(folder, ["b"])
    assert not folder.exists()
