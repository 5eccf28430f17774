"""What is kept between runs is trusted, so that a file counts only if nobody else can have written it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from oplet import CacheFolder
from oplet.model.files.cache_folder import FOLDER_VARIABLE

pytestmark = pytest.mark.skipif(os.name == "nt", reason="files have no such permissions there")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CacheFolder:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "caches"))
    return CacheFolder("things")


def keep(folder: CacheFolder, name: str = "a.thing", content: bytes = b"kept") -> Path:
    with folder.replace(name) as file:
        file.write(content)
    return Path(folder.path, name)


def read(folder: CacheFolder, name: str = "a.thing") -> bytes:
    with folder.open(name) as file:
        return file.read()


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o022, 0o077])
def test_what_is_kept_is_the_user_s_alone_whatever_the_umask(umask: int, folder: CacheFolder) -> None:
    before = os.umask(umask)
    try:
        path = keep(folder)
    finally:
        os.umask(before)
    assert [stat.S_IMODE(place.stat().st_mode) for place in (path, path.parent, path.parent.parent)] == [0o600, 0o700, 0o700]
    assert read(folder) == b"kept"


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_is_left_alone_until_it_is_replaced(mode: int, folder: CacheFolder) -> None:
    keep(folder).chmod(mode)
    with pytest.raises(PermissionError, match="user alone may write"):
        read(folder)
    keep(folder)
    assert read(folder) == b"kept"


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
def test_of_a_folder_to_which_others_may_add_nothing_is_taken_and_nothing_is_kept_there(mode: int, folder: CacheFolder) -> None:
    keep(folder).parent.chmod(mode)
    for use in (lambda: read(folder), lambda: keep(folder), lambda: folder.update("a.thing").close()):
        with pytest.raises(PermissionError, match="user alone may write"):
            use()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only the administrator can give a file away")
def test_what_another_user_owns_is_left_alone(folder: CacheFolder) -> None:
    path = keep(folder)
    os.chown(path, 12345, 12345)
    with pytest.raises(PermissionError):
        read(folder)
    os.chown(path, 0, 0)
    assert read(folder) == b"kept"
    os.chown(path.parent, 12345, 12345)
    with pytest.raises(PermissionError):
        read(folder)


def test_links_are_not_followed_and_pipes_not_waited_for(folder: CacheFolder, tmp_path: Path) -> None:
    kept = keep(folder)
    (kept.parent / "link").symlink_to(kept)
    os.mkfifo(kept.parent / "pipe", 0o600)
    (kept.parent / "folder").mkdir()
    for name in ("link", "pipe", "folder", "missing"):
        with pytest.raises(OSError):
            read(folder, name)
    with pytest.raises(OSError):
        folder.update("link")
    os.rename(kept.parent, tmp_path / "elsewhere")
    kept.parent.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PermissionError):
        read(folder)


def test_a_file_is_replaced_as_a_whole_or_not_at_all(folder: CacheFolder) -> None:
    keep(folder)
    with pytest.raises(TypeError), folder.replace("a.thing") as file:
        file.write("text")  # type: ignore[arg-type]
    assert read(folder) == b"kept"
    with folder.update("a.thing") as file:
        file.write(b"KE")
    assert read(folder) == b"KEpt"
    assert os.listdir(folder.path) == ["a.thing"]


def test_the_newest_files_stay(folder: CacheFolder) -> None:
    for number in range(6):
        os.utime(keep(folder, f"a-{number}.thing", b"x" * 10), (number, number))
    keep(folder, "b.thing")
    folder.keep_newest("a-", ".thing", 4)
    assert sorted(os.listdir(folder.path)) == ["a-2.thing", "a-3.thing", "a-4.thing", "a-5.thing", "b.thing"]
    folder.keep_newest("a-", ".thing", 4, 25)
    assert sorted(os.listdir(folder.path)) == ["a-4.thing", "a-5.thing", "b.thing"]


def test_who_has_no_cache_folder_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oplet.model.files.cache_folder.cache_folder", lambda: "")
    folder = CacheFolder("things")
    assert folder.path == ""
    for use in (lambda: keep(folder), lambda: read(folder), lambda: folder.update("a")):
        with pytest.raises(OSError):
            use()


def test_a_folder_in_thousands_of_others_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, "/" + "deep/" * 2000)
    for use in (keep, read):
        with pytest.raises(OSError):
            use(CacheFolder("things"))
