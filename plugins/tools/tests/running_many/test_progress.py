"""The progress bar: on a terminal, on standard error, and never among the results."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from plugins.tools.tests.terminals import on_a_terminal
from tests.children import run_child


def test_a_bar_with_rate_and_time_left_leaves_the_results_alone(digits: Path, pictures: Path, tmp_path: Path) -> None:
    command = ["-m", "oplet", "run", str(digits), "-i", str(pictures)]
    text = "\n".join(on_a_terminal(command, tmp_path / "out"))
    quiet = run_child([sys.executable, *command, "-q"], text=False)
    assert (tmp_path / "out").read_bytes() == quiet.stdout
    assert quiet.stderr == b""
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
