"""A pytest plugin: what tests start ends with the run, however that ends: a server whose fixture was never torn down stayed for ever.

A process of its own watches the run. When the run is gone, killed or finished, it ends those that the run started and that are still there: the
run's descendants, which it notes as long as the run lives, and those that have the run's mark in their environment. Linux alone.

usage: python tests/ended.py PID MARK, which the plugin starts; with OPLET_TEST_PACE=0.1 in the environment all its waits are a tenth
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from contextlib import suppress

#: The environment variable with the mark of a run.
MARK = "OPLET_TEST_RUN"
#: Seconds between two looks, and after the run's end until its processes are asked to end, and until they are killed.
_LOOK, _GRACE, _PATIENCE = 1.0, 2.0, 3.0

#: A process: its number, and when it began, as numbers are given again.
_Process = tuple[int, str]


def pytest_configure() -> None:
    """Start the watcher, in the process that the others of a run come from."""
    if sys.platform != "linux" or os.environ.get("PYTEST_XDIST_WORKER"):
        return
    os.environ[MARK] = mark = uuid.uuid4().hex
    command = [sys.executable, "-I", os.path.abspath(__file__), str(os.getpid()), mark]
    environment = {name: value for name, value in os.environ.items() if name != MARK}
    silent = subprocess.DEVNULL
    subprocess.Popen(command, env=environment, stdin=silent, stdout=silent, stderr=silent, start_new_session=True)


def _processes() -> dict[int, tuple[str, int]]:
    """When each process began, and its parent's number."""
    found = {}
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError, IndexError, ValueError):
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
            if fields[0] not in "ZX":
                found[int(name)] = fields[19], int(fields[1])
    return found


def _descendants(root: int, now: dict[int, tuple[str, int]]) -> set[_Process]:
    children: dict[int, list[int]] = {}
    for number, (_, parent) in now.items():
        children.setdefault(parent, []).append(number)
    found, open_ones = set(), [root]
    while open_ones:
        for child in children.get(open_ones.pop(), ()):
            found.add((child, now[child][0]))
            open_ones.append(child)
    return found


def _marked(number: int, mark: str) -> bool:
    with suppress(OSError), open(f"/proc/{number}/environ", "rb") as file:
        return f"{MARK}={mark}".encode() in file.read().split(b"\0")
    return False


def watch(root: int, mark: str) -> None:
    """Wait until a run is gone, then end what it started."""
    pace = float(os.environ.get("OPLET_TEST_PACE", "1"))
    now = _processes()
    began = now.get(root, ("", 0))[0]
    started: set[_Process] = set()
    while (now.get(root) or ("gone", 0))[0] == began and began:
        started |= _descendants(root, now)
        time.sleep(_LOOK * pace)
        now = _processes()
        started = {each for each in started if now.get(each[0], ("", 0))[0] == each[1]}
    for wait, end in ((_GRACE, signal.SIGTERM), (_PATIENCE, signal.SIGKILL)):
        time.sleep(wait * pace)
        now = _processes()
        started |= {(number, told[0]) for number, told in now.items() if _marked(number, mark)}
        for number, since in started:
            if number != os.getpid() and now.get(number, ("", 0))[0] == since:
                with suppress(OSError):
                    os.kill(number, end)


if __name__ == "__main__":
    watch(int(sys.argv[1]), sys.argv[2])
