"""A run that was killed goes on where it stopped: every row is there once, and nothing is mixed with another run."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.places import ROOT

CHILD = Path(__file__).with_name("killed_child.py")
FORMATS = ["jsonl", "csv", "npz", "parquet"]


def folder_of(path: Path, count: int) -> Path:
    path.mkdir()
    random = np.random.default_rng(0)
    for number in range(count):
        Image.fromarray(random.integers(0, 255, (8, 8), np.uint8)).save(path / f"{number:04}.png")
    (path / f"{count // 4:04}.png").write_bytes(b"no picture")
    return path


def killed(rows: int, *arguments: object) -> None:
    """Run the command in a process that is killed after so many rows."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, CHILD, str(rows), "run", *map(str, arguments)], capture_output=True, env=environment, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="has no SIGKILL")
@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(
    ("count", "workers"),
    [(60, 1), pytest.param(1000, 1, marks=pytest.mark.sweep), pytest.param(1000, 2, marks=pytest.mark.sweep)],
)
def test_killed_at_two_fifths_it_ends_with_every_row_once(
    oplet, digits: Path, tmp_path: Path, kind: str, count: int, workers: int
) -> None:
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    pictures = folder_of(tmp_path / "pictures", count)
    whole, target = tmp_path / f"whole.{kind}", tmp_path / f"r.{kind}"
    assert oplet("run", digits, "-i", pictures, "-o", whole).code == 3
    killed(count * 2 // 5, digits, "-i", pictures, "-o", target, "--workers", workers)
    assert not target.exists()
    [rows] = [path for path in (tmp_path / f"r.{kind}.oplet-run").iterdir() if path.name != "run.json"]
    with rows.open("ab") as file:  # and the last row half written
        file.write({"npz": b"ROW\n\xff\0", "parquet": b"ROW\n\xff\0"}.get(kind, b'{"row": ' if kind == "jsonl" else b"24,half"))
    refused = oplet("run", digits, "-i", pictures, "-o", target)
    assert refused.code == 1
    assert f"has {count * 2 // 5} rows of a run that was interrupted; give --resume to continue it" in refused.err
    ran = oplet("run", digits, "-i", pictures, "-o", target, "--resume", "--workers", workers)
    assert ran.code == 3, ran.err
    assert f"continuing after {count * 2 // 5} rows" in ran.err
    assert f"1 row of {count} failed" in ran.err
    assert target.read_bytes() == whole.read_bytes()
    assert not (tmp_path / f"r.{kind}.oplet-run").exists()
    if kind == "jsonl":
        lines = [json.loads(line) for line in target.read_text().splitlines()]
        assert [line["row"] for line in lines] == list(range(count))
        assert len({line["name"] for line in lines}) == count


@pytest.fixture
def interrupted(oplet, digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with "p" of 12 pictures, and a run on it that --strict stopped after 3 rows."""
    folder_of(tmp_path / "p", 12)
    shutil.copy(digits, tmp_path / "m.tflite")
    monkeypatch.chdir(tmp_path)
    assert oplet("run", "m.tflite", "-i", "p", "-o", "r.jsonl", "--strict").code == 1
    assert (tmp_path / "r.jsonl.oplet-run" / "rows.jsonl").read_bytes().count(b"\n") == 3
    return tmp_path


def change_the_model(folder: Path) -> None:
    with (folder / "m.tflite").open("ab") as file:
        file.write(bytes(8))


@pytest.mark.parametrize(
    ("change", "more", "words"),
    [
        (lambda f: (f / "p" / "0001.png").write_bytes(b"other"), [], "the folder 'p' was changed since"),
        (lambda f: (f / "p" / "0001.png").unlink(), [], "the folder 'p' was changed since (12 rows then, 11 now)"),
        (lambda f: shutil.copy(f / "p" / "0001.png", f / "p" / "0000a.png"), [], "(12 rows then, 13 now)"),
        (change_the_model, [], "the model is another one than before"),
        (None, ["--raw"], "--raw was not given and is True"),
        (None, ["--scale", "2"], "--preprocess was"),
        (None, ["--top", "3"], "--top was not given and is 3"),
        (None, ["--preprocess", "resize=crop"], "--preprocess was"),
        (None, ["-p", "no:other"], "-p was not given and is ['other']"),
        (lambda f: (f / "r.jsonl.oplet-run" / "run.json").write_text("{"), [], "is damaged"),
        (lambda f: (f / "r.jsonl.oplet-run" / "run.json").write_text("{}"), [], "it was begun by oplet None"),
        (lambda f: (f / "r.jsonl.oplet-run" / "rows.jsonl").write_text("a\nb\n"), [], "was changed"),
    ],
)
def test_another_run_is_not_continued(oplet, interrupted: Path, change, more: list[str], words: str) -> None:
    if change is not None:
        change(interrupted)
    ran = oplet("run", "m.tflite", "-i", "p", "-o", "r.jsonl", "--resume", *more)
    assert ran.code == 1
    assert words in ran.err, ran.err
    assert "--no-resume to begin anew" in ran.err
    anew = oplet("run", "m.tflite", "-i", "p", "-o", "r.jsonl", "--no-resume", *more)
    assert anew.code == 3, anew.err
    assert "continuing" not in anew.err
    assert len((interrupted / "r.jsonl").read_text().splitlines()) == len(list((interrupted / "p").iterdir()))


def test_what_changes_no_result_may_change(oplet, interrupted: Path) -> None:
    ran = oplet("run", "m.tflite", "-i", "p", "-o", "r.jsonl", "--resume", "--workers", 2, "--num-threads", 2, "--no-mmap")
    assert ran.code == 3, ran.err
    assert len((interrupted / "r.jsonl").read_text().splitlines()) == 12


def test_without_an_interrupted_run_resume_begins_one(oplet, interrupted: Path) -> None:
    for _ in range(2):
        assert oplet("run", "m.tflite", "-i", "p", "-o", "other.csv", "--resume").code == 3
    assert len((interrupted / "other.csv").read_text().splitlines()) == 13


def test_two_processes_do_not_write_the_same_results(oplet, interrupted: Path) -> None:
    from oplet.toolkit import OwnFolder
    from oplet_tools.running.many.keeping.appending import AppendedFile

    other = AppendedFile(OwnFolder(interrupted / "r.jsonl.oplet-run"), "rows.jsonl")
    ran = oplet("run", "m.tflite", "-i", "p", "-o", "r.jsonl", "--resume")
    assert ran.code == 1
    assert "another process is writing it" in ran.err
    other.close()
    assert oplet("run", "m.tflite", "-i", "p", "-o", "r.jsonl", "--resume").code == 3


def test_links_are_not_followed(oplet, interrupted: Path) -> None:
    precious = interrupted / "precious"
    precious.write_text("precious")
    rows = interrupted / "r.jsonl.oplet-run" / "rows.jsonl"
    rows.unlink()
    rows.symlink_to(precious)
    assert oplet("run", "m.tflite", "-i", "p", "-o", "r.jsonl", "--resume").code == 1
    elsewhere = interrupted / "elsewhere"
    elsewhere.mkdir()
    (interrupted / "q.jsonl.oplet-run").symlink_to(elsewhere)
    assert oplet("run", "m.tflite", "-i", "p", "-o", "q.jsonl").code == 1
    assert precious.read_text() == "precious"
    assert list(elsewhere.iterdir()) == []
    (interrupted / "s.jsonl").symlink_to(precious)
    assert oplet("run", "m.tflite", "-i", "p", "-o", "s.jsonl").code == 3
    assert precious.read_text() == "precious"
    assert not (interrupted / "s.jsonl").is_symlink()


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs owners")
@pytest.mark.parametrize("how", ["writable", "group", "foreign", "link"])
def test_a_folder_that_somebody_else_may_write_into_holds_no_results(oplet, interrupted: Path, how: str) -> None:
    planted = interrupted / "q.jsonl.oplet-run"
    planted.mkdir()
    precious = planted / "rows.jsonl"
    precious.write_text("planted")
    if how == "foreign":
        if os.geteuid():
            pytest.skip("only the administrator gives files away")
        os.chown(planted, 12345, 12345)
    elif how == "link":
        planted.rename(interrupted / "elsewhere")
        planted.symlink_to(interrupted / "elsewhere")
    else:
        planted.chmod(0o777 if how == "writable" else 0o775)
    for more in ((), ("--resume",), ("--no-resume",)):
        ran = oplet("run", "m.tflite", "-i", "p", "-o", "q.jsonl", *more)
        assert ran.code == 1, more
        assert "q.jsonl.oplet-run' is a link, no folder, or one that somebody else may write into" in ran.err
        assert "give --output a file in a folder of your own" in ran.err
    assert precious.read_text() == "planted"
    assert not os.path.lexists(interrupted / "q.jsonl")


@pytest.mark.skipif(sys.platform == "win32", reason="needs permissions")
def test_the_folder_is_the_user_s_alone_and_the_results_are_as_any_new_file(oplet, interrupted: Path) -> None:
    before = os.umask(0)
    try:
        (interrupted / "new").touch()
        shutil.rmtree(interrupted / "r.jsonl.oplet-run")
        assert oplet("run", "m.tflite", "-i", "p", "-o", "r.jsonl", "--strict").code == 1
        folder = interrupted / "r.jsonl.oplet-run"
        assert [stat.S_IMODE(each.stat().st_mode) for each in (folder, *sorted(folder.iterdir()))] == [0o700, 0o600, 0o600]
        assert oplet("run", "m.tflite", "-i", "p", "-o", "r.jsonl", "--resume").code == 3
    finally:
        os.umask(before)
    assert stat.S_IMODE((interrupted / "r.jsonl").stat().st_mode) == stat.S_IMODE((interrupted / "new").stat().st_mode)


def test_a_folder_with_something_else_in_it_stays(oplet, interrupted: Path) -> None:
    note = interrupted / "r.jsonl.oplet-run" / "note.txt"
    note.write_text("mine")
    assert oplet("run", "m.tflite", "-i", "p", "-o", "r.jsonl", "--resume").code == 3
    assert note.read_text() == "mine"
    assert os.listdir(note.parent) == ["note.txt"]


def test_ctrl_c_keeps_what_is_done(oplet, interrupted: Path, monkeypatch) -> None:
    from oplet_tools.cli.row_report import RowReport

    def progress(self: RowReport, done: int, total: int | None) -> None:
        if done == 7:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(RowReport, "progress", progress)
        ran = oplet("run", "m.tflite", "-i", "p", "-o", "r.jsonl", "--resume")
    assert ran.code == 130
    assert "interrupted: the finished rows are kept, and --resume continues the run" in ran.err
    ran = oplet("run", "m.tflite", "-i", "p", "-o", "r.jsonl", "--resume")
    assert ran.code == 3
    assert "continuing after 7 rows" in ran.err
    assert len((interrupted / "r.jsonl").read_text().splitlines()) == 12
