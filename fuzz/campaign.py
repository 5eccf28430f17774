"""Run very many mutated models in a process of their own, and count what came of them.

The parent watches: a model that takes longer than it may is a hang, a process that dies is a crash; either way a new
process goes on behind it. Counts are written to a file all the time, and a campaign that was stopped goes on from there.
"""

from __future__ import annotations

import json
import mmap
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from fuzz.worker import PROGRESS
from oplet.model.whole_file import write_whole
from oplet.tools.children import python_process

__all__ = ["Campaign"]

#: Seconds after which a model hangs.
HANG_SECONDS = 10.0

#: The campaign takes one core.
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}

#: Models that a process runs before another takes its place.
_LIFE = 20_000

#: Findings of a kind that are kept with their numbers.
_KEPT = 5


class Campaign:
    """Numbers `first` to `first + count - 1`.

    Attributes:
        next: the number that is run next.
        counts: by kind, stage and error.
        findings: what should not happen, by kind and place: how often, and the first numbers with their messages.
    """

    def __init__(self, count: int, first: int = 0, folder: str = "", state: Path | None = None) -> None:
        self.stop = first + count
        self.first = self.next = first
        self.folder = folder
        self.state = state
        self.seconds = 0.0
        self._answers = 0  # of the process that runs now, which began with `next`
        self.counts: Counter[str] = Counter()
        self.findings: dict[str, dict[str, Any]] = {}
        if state is not None and state.exists():
            saved = json.loads(state.read_text())
            if (saved["first"], saved["folder"]) == (first, folder):
                self.next, self.seconds = saved["next"], saved["seconds"]
                self.counts, self.findings = Counter(saved["counts"]), saved["findings"]

    @property
    def clean(self) -> bool:
        """Whether every model was run or refused as it should be; accidents do not count."""
        return not any(key.split()[0] in ("escaped", "crash", "hang", "memory") for key in self.findings)

    def run(self) -> None:
        """Run until all numbers were run; an interrupt saves what was counted."""
        with tempfile.TemporaryDirectory() as scratch:
            page_path = os.path.join(scratch, "page")
            Path(page_path).write_bytes(PROGRESS.pack(-1))
            with open(page_path, "r+b") as file:
                page = mmap.mmap(file.fileno(), PROGRESS.size)
            try:
                while self.next < self.stop:
                    self._process(page_path, page)
            finally:
                self.save()

    def _process(self, page_path: str, page: mmap.mmap) -> None:
        """Run a worker until it has done its share, dies or hangs."""
        stop = min(self.stop, self.next + _LIFE)
        self._answers = 0
        PROGRESS.pack_into(page, 0, self.next)
        with tempfile.TemporaryFile() as errors:
            folder = self.folder and os.path.abspath(self.folder)
            arguments = ["-m", "fuzz.worker", page_path, str(self.next), str(stop), "1", folder]
            places = [Path(__file__).parents[1]]
            pipe = subprocess.PIPE
            with python_process(arguments, environment=_ONE_THREAD, folders=places, stdout=pipe, stderr=errors) as process:
                hung = self._watch(process, page)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(5)
            number = PROGRESS.unpack_from(page)[0]
            self._answers = 0
            if number == -1:
                self.next = stop
            else:
                errors.seek(0)
                words = errors.read().decode("utf-8", "replace")
                if number == self.next and "Fatal Python error" not in words and not hung and process.returncode == 1:
                    raise RuntimeError(f"The worker does not start:\n{words}")
                kind = "hang" if hung else "crash"
                place = next((line.strip() for line in words.splitlines() if "/oplet" in line), "?")
                self.find(number, kind, "?", f"exit {process.returncode}", place[-120:], words[:200] + words[-600:])
                self.next = number + 1
        self.save()

    def _watch(self, process: subprocess.Popen[bytes], page: mmap.mmap) -> bool:
        """Read what the worker writes until it ends; True if it had to be stopped."""
        stream = process.stdout
        if stream is None:
            return False
        os.set_blocking(stream.fileno(), False)
        rest = b""
        last, since, saved = PROGRESS.unpack_from(page)[0], time.monotonic(), time.monotonic()
        started = since
        first = last
        with selectors.DefaultSelector() as selector:
            selector.register(stream, selectors.EVENT_READ)
            while True:
                selector.select(0.5)
                chunk = stream.read()
                if chunk:
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        self._line(line.decode())
                now = time.monotonic()
                number = PROGRESS.unpack_from(page)[0]
                if chunk == b"":
                    self.seconds += now - started
                    return False
                if number != last:
                    last, since = number, now
                # The first takes longer: Python starts and the seeds are read.
                elif now - since > HANG_SECONDS + (20 if number == first else 0):
                    process.send_signal(signal.SIGABRT)  # faulthandler says where it is
                    process.wait()
                    self._line_rest(stream, rest)
                    self.seconds += now - started
                    return True
                if now - saved > 20:
                    saved = now
                    self.save()
                time.sleep(0.05)

    def _line_rest(self, stream: Any, rest: bytes) -> None:
        for line in (rest + (stream.read() or b"")).split(b"\n"):
            if line:
                self._line(line.decode())

    def _line(self, line: str) -> None:
        self._answers += 1
        if line.startswith("["):
            number, kind, stage, error, place, message = json.loads(line)
            self.find(number, kind, stage, error, place, message)
        else:
            self.counts[line.strip()] += 1

    def find(self, number: int, kind: str, stage: str, error: str, place: str, message: str) -> None:
        """Note what should not happen."""
        self.counts[f"{kind} {stage} {error}"] += 1
        found = self.findings.setdefault(f"{kind} {error} {place}", {"count": 0, "examples": []})
        found["count"] += 1
        if len(found["examples"]) < _KEPT:
            found["examples"].append([number, message])

    def save(self) -> None:
        """Write counts and findings to the state's file."""
        if self.state is None:
            return
        content = {
            "first": self.first,
            "next": self.next + self._answers,
            "stop": self.stop,
            "folder": self.folder,
            "seconds": self.seconds,
            "models": sum(self.counts.values()),
            "counts": dict(self.counts.most_common()),
            "findings": dict(sorted(self.findings.items(), key=lambda item: -item[1]["count"])),
        }
        write_whole(self.state, json.dumps(content, indent=1))
