"""Progress bars on a terminal: a bar per way that is measured, full in the end, and log lines of engines whole above them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from plugins.tools.tests.terminals import on_a_terminal
from tests.places import EXAMPLES

from oplet import PluginManager
from oplet_tools.benchmarking.tune import tune_model

DIGITS = EXAMPLES / "digits" / "digits_float32.tflite"
LOGGED = "INFO: Created TensorFlow Lite XNNPACK delegate for CPU."
#: Logs as native code does, past Python's sys.stderr, while bars stand on the screen.
LOGGING = f"""
import os, sys
from oplet_tools.cli.progress import progress_bars
with progress_bars() as progress:
    for way in ("the first", "[red]the second"):
        progress(way, 0.0)
        os.write(2, b"{LOGGED}\\n\\n{LOGGED[:9]}")
        progress(way, 0.5)
        os.write(2, b"{LOGGED[9:]}\\n")
        print("a warning of Python", file=sys.stderr)
        progress(way, 1.0)
    os.write(2, b"an end without a line break")
print("afterwards", file=sys.stderr)
"""


def test_lines_that_engines_log_are_whole_and_above_the_bars(tmp_path: Path) -> None:
    lines = on_a_terminal(["-c", LOGGING], tmp_path / "out")
    assert lines.count(LOGGED) == 4
    assert lines.count("a warning of Python") == 2
    # Nothing else holds a part of them: no bar stands before or after one in its line.
    assert [line for line in lines if "INFO" in line or "XNNPACK" in line or "warning" in line] == [
        line for line in lines if line in (LOGGED, "a warning of Python")
    ]
    assert lines[-1] == "an end without a line breakafterwards"


def test_every_bar_is_full_in_the_end_and_its_name_is_text(tmp_path: Path) -> None:
    lines = on_a_terminal(["-c", LOGGING], tmp_path / "out")
    for way in ("the first", "[red]the second"):
        drawn = [line for line in lines if line.startswith(way)]
        assert "100%" in drawn[-1]
        assert any(" 0%" in line for line in drawn)


def test_tune_draws_a_bar_for_each_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPLET_CACHE_DIR", str(tmp_path))
    told: dict[str, list[float]] = {}
    choice = tune_model(DIGITS, plugins=PluginManager(), progress=lambda what, part: told.setdefault(what, []).append(part))
    ways = {str(trial.candidate) for trial in choice.trials}
    assert ways <= told.keys()
    # Of the others, some have parts of the model run by an engine, to see whether that pays.
    assert len([what for what in told.keys() - ways if "(nodes" not in what]) <= 1, "the finalists' turns have one bar"
    assert all(parts[0] == 0.0 and parts[-1] == 1.0 and parts == sorted(parts) for parts in told.values())
    assert max(map(len, told.values())) > 3, "bars move between runs"
    lines = on_a_terminal(["-m", "oplet", "tune", str(DIGITS)], tmp_path / "out")
    printed = (tmp_path / "out").read_text()
    # Its own ways: which kernels the engines leave nodes to is decided by time.
    rows = printed.partition("ways to run it")[2].partition("\u2500\n")[2].partition("\n\n")[0].splitlines()
    printed_ways = [re.split(r"\s{2,}", row.strip("> "))[0] for row in rows]
    assert len(printed_ways) >= 2
    assert all(any(line.startswith(way) and "100%" in line for line in lines) for way in printed_ways), printed_ways
    assert "\x1b" not in printed


def test_build_tells_what_it_is_doing(tmp_path: Path) -> None:
    command = [
        "-m",
        "oplet",
        "build",
        str(EXAMPLES / "atan" / "atan.tflite"),
        "--name",
        "told_kernels",
        "-o",
        str(tmp_path / "dist"),
    ]
    lines = on_a_terminal(command, tmp_path / "out")
    for what in ("cutting out the kernels", "measuring imports"):
        assert any(line.startswith(what) and "100%" in line for line in lines)
