"""Files appear whole or not at all, with the permissions of any new file, and links are replaced, not followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from oplet import ModelBuilder
from oplet.errors import ModelError
from oplet.model.files import atomic_write as module
from oplet.model.files.atomic_write import atomic_write, check_target, write_atomically
from oplet.model.files.external import write_file
from oplet.model.model import Model
from oplet_build.building.packing.payload import write_archive
from oplet_build.selection.resolver_code import write_generated
from oplet_testing import Spec, one_op_model
from oplet_tools.benchmarking.trace import write_trace
from oplet_tools.running.outputs import save_outputs

pytestmark = pytest.mark.skipif(os.name != "posix", reason="permissions and links of POSIX")

MODEL = one_op_model("TANH", [Spec("float32", [2])], [Spec("float32", [2])])
OUTPUTS = {"y": np.arange(3)}

WRITERS: dict[str, Callable[[Path], object]] = {
    "model.tflite": lambda path: Model.from_bytes(MODEL).save(path),
    "built.tflite": lambda path: ModelBuilder.from_model(Model.from_bytes(MODEL)).save(path),
    "external.bin": lambda path: write_file(str(path), b"new"),
    "outputs.npz": lambda path: save_outputs(OUTPUTS, path),
    "outputs.npy": lambda path: save_outputs(OUTPUTS, path),
    "outputs.json": lambda path: save_outputs(OUTPUTS, path),
    "resolver.py": lambda path: write_generated(path, "made by oplet select"),
    "trace.json": lambda path: write_trace(path, {}),
    "app.pyz": lambda path: write_archive(path, {}, lambda headers: {"__main__.py": b""}, ""),
}


@pytest.fixture(params=sorted(WRITERS))
def written(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Callable[[Path], object], Path]:
    folder = tmp_path / "folder"
    folder.mkdir()
    return WRITERS[request.param], folder / request.param


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_link_at_the_name_that_others_would_guess_is_not_followed(written, tmp_path) -> None:
    write, path = written
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    planted = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    planted.symlink_to(victim)
    write(path)
    assert victim.read_bytes() == b"precious"
    assert planted.is_symlink()
    assert path.is_file()
    assert not path.is_symlink()
    assert sorted(path.parent.iterdir()) == sorted([path, planted])


def test_a_link_at_the_target_is_replaced_and_not_followed(written, tmp_path) -> None:
    write, path = written
    victim = tmp_path / "victim"
    victim.write_bytes(b"made by oplet select")
    victim.chmod(0o777)
    path.symlink_to(victim)
    write(path)
    assert victim.read_bytes() == b"made by oplet select"
    assert path.is_file()
    assert not path.is_symlink()
    assert not mode(path) & stat.S_IWOTH, "permissions come from no link"


@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077])
def test_a_new_file_has_the_permissions_that_a_plain_open_gives(written, umask) -> None:
    write, path = written
    before = os.umask(umask)
    try:
        write(path)
    finally:
        os.umask(before)
    assert mode(path) == 0o666 & ~umask


def test_a_file_that_is_replaced_passes_its_permissions_on(written) -> None:
    write, path = written
    path.write_bytes(b"made by oplet select")
    path.chmod(0o640)
    opened = path.open("rb")
    write(path)
    assert mode(path) == 0o640
    assert opened.read() == b"made by oplet select", "who has the old file open keeps it"
    opened.close()


def test_a_write_that_is_interrupted_leaves_the_old_file_and_nothing_else(written, monkeypatch) -> None:
    write, path = written
    path.write_bytes(b"made by oplet select")

    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module.os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(path)
    assert path.read_bytes() == b"made by oplet select"
    assert list(path.parent.iterdir()) == [path]


def test_what_fails_half_way_leaves_the_old_file_and_nothing_else(tmp_path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail() -> None:
        with atomic_write(path) as file:
            file.write(b"new")
            file.flush()
            assert path.read_bytes() == b"old"
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_private_file_is_never_readable_by_others_while_it_is_written(tmp_path) -> None:
    path = tmp_path / "secret"
    path.write_bytes(b"old")
    path.chmod(0o600)
    with atomic_write(path):
        assert {mode(entry) for entry in tmp_path.iterdir()} == {0o600}


def test_a_name_that_is_taken_already_is_not_written_to(tmp_path, monkeypatch) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    names = iter([bytes(8), bytes(8), bytes([1]) * 8])
    monkeypatch.setattr(module.os, "urandom", lambda size: next(names))
    (tmp_path / f".oplet-{bytes(8).hex()}.tmp").symlink_to(victim)
    write_atomically(tmp_path / "file", "new")
    assert victim.read_bytes() == b"precious"
    assert (tmp_path / "file").read_text() == "new"


def test_where_every_name_is_taken_the_file_that_was_asked_for_is_named(tmp_path, monkeypatch) -> None:
    asked = []
    monkeypatch.setattr(module.os, "urandom", lambda size: asked.append(size) or bytes(size))
    (tmp_path / f".oplet-{bytes(8).hex()}.tmp").touch()
    with pytest.raises(FileExistsError) as caught:
        write_atomically(tmp_path / "file", "new")
    assert caught.value.filename == str(tmp_path / "file")
    assert 2 < len(asked) <= 100


def test_a_device_is_written_to_and_not_replaced(tmp_path) -> None:
    link = tmp_path / "null"
    link.symlink_to(os.devnull)
    write_atomically(link, "gone")
    assert link.is_symlink()
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_an_error_names_the_file_that_was_asked_for(tmp_path) -> None:
    with pytest.raises(OSError) as caught:
        write_atomically(tmp_path / "nowhere" / "file", b"")
    assert caught.value.filename == str(tmp_path / "nowhere" / "file")
    with pytest.raises(ModelError, match="Could not write '.*nowhere/m.tflite': No such file"):
        Model.from_bytes(MODEL).save(tmp_path / "nowhere" / "m.tflite")
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError) as folder:
        write_atomically(tmp_path / "folder", b"")
    assert "folder" in str(folder.value)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_program_may_be_run_by_those_who_may_read_it(tmp_path) -> None:
    path = tmp_path / "app.pyz"
    before = os.umask(0o027)
    try:
        write_archive(path, {}, lambda headers: {"__main__.py": b""}, "/usr/bin/env python3")
        assert mode(path) == 0o750
        path.chmod(0o604)
        write_archive(path, {}, lambda headers: {"__main__.py": b""}, "/usr/bin/env python3")
        assert mode(path) == 0o705
    finally:
        os.umask(before)


def test_a_target_that_cannot_be_written_is_told_before_the_work(tmp_path: Path) -> None:
    check_target(tmp_path / "new")
    (tmp_path / "old").write_bytes(b"x")
    check_target(tmp_path / "old")
    for target, kind in (
        (tmp_path / "no" / "x", FileNotFoundError),
        (tmp_path, IsADirectoryError),
        (tmp_path / "old" / "x", OSError),
    ):
        with pytest.raises(kind) as caught:
            check_target(target)
        assert caught.value.filename == str(target)
