"""What tests start ends with the run, also where that is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.children import LONG
from tests.ended import MARK, _processes
from tests.places import ROOT

#: A test that starts a process, in a session of its own, and never ends it; it says its number.
STARTS = """
import os, subprocess, sys, time
def test_starts():
    environment = {{**os.environ}} if {marked} else {{"PATH": os.environ["PATH"]}}
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3000)"], env=environment, start_new_session=True)
    open({file!r}, "w").write(str(child.pid))
    while {kills} or not os.path.exists({file!r} + " is read"):
        time.sleep(0.1)
"""


def _is_there(number: int) -> bool:
    try:
        os.kill(number, 0)
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def _looks(run: int) -> int:
    """How often the watcher of a run has gone to sleep, as after each look."""
    for number, (_, parent) in _processes().items():
        if parent == run and b"ended.py" in Path(f"/proc/{number}/cmdline").read_bytes():
            return int(Path(f"/proc/{number}/status").read_text().split("\nvoluntary_ctxt_switches:")[1].split()[0])
    raise AssertionError("nobody watches the run")


@pytest.mark.skipif(sys.platform != "linux", reason="the watcher reads /proc")
@pytest.mark.parametrize(("kills", "marked"), [(True, True), (True, False), (False, True)])
def test_a_process_that_a_test_started_is_gone_after_the_run(tmp_path: Path, kills: bool, marked: bool) -> None:
    file = tmp_path / "number"
    (tmp_path / "test_it.py").write_text(STARTS.format(marked=marked, file=str(file), kills=kills))
    environment = {
        **os.environ,
        "OPLET_TEST_PACE": "0.2",
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    for name in (MARK, "PYTEST_XDIST_WORKER"):
        environment.pop(name, None)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "tests.ended",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        tmp_path,
        tmp_path,
    ]
    run = subprocess.Popen(list(map(str, command)), env=environment, cwd=tmp_path, stdout=subprocess.DEVNULL)
    try:
        end = time.monotonic() + LONG
        while not (file.exists() and file.read_text()) and time.monotonic() < end:
            time.sleep(0.2)
        child = int(file.read_text())
        assert _is_there(child)
        if kills:
            looks = _looks(run.pid)
            while _looks(run.pid) < looks + 3 and time.monotonic() < end:  # the watcher has seen it
                time.sleep(0.1)
            run.send_signal(signal.SIGKILL)
        else:
            file.with_name("number is read").touch()
        run.wait(LONG)
        while _is_there(child) and time.monotonic() < end:
            time.sleep(0.2)
        assert not _is_there(child)
    finally:
        run.kill()
        run.wait()
