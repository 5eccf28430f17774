"""The progress bar: on a terminal, on standard error, and never among the results."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.children import LONG, run_child

pty = pytest.importorskip("pty")


def test_a_bar_with_rate_and_time_left_leaves_the_results_alone(digits: Path, pictures: Path, tmp_path: Path) -> None:
    ours, its = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    command = [sys.executable, "-m", "oplet", "run", str(digits), "-i", str(pictures)]
    with (tmp_path / "out").open("wb") as out:
        done = subprocess.run(command, stdout=out, stderr=its, env=environment, timeout=LONG, check=False)
    os.close(its)
    told = b""
    while True:
        try:
            chunk = os.read(ours, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not chunk:
            break
        told += chunk
    os.close(ours)
    assert done.returncode == 0
    quiet = run_child([*command, "-q"], text=False)
    assert (tmp_path / "out").read_bytes() == quiet.stdout
    assert quiet.stderr == b""
    text = told.decode()
    assert "12/12" in text
    assert "/s" in text
    assert "0:00:00" in text
    assert "pictures were prepared by the same rules in 12 rows" in text


def test_without_a_terminal_there_is_no_bar(oplet, digits: Path, pictures: Path) -> None:
    ran = oplet("run", digits, "-i", pictures)
    assert "12/12" not in ran.err
    assert "\x1b" not in ran.err


def test_a_reader_that_goes_away_ends_the_run_without_a_traceback(digits: Path, pictures: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "oplet", "run", str(digits), "-i", str(pictures), "-q"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        told = process.stderr.read()
    assert b"Traceback" not in told, told
    assert process.returncode == 1
