"""Fuzzing campaigns: many mutated models are run in worker processes, and the outcomes are counted.

Each engine has its own process, so that memory corruption is blamed on the right engine. The numbers of the models are divided among the
engines. The parent watches the workers: a model that exceeds its time is a hang, a process that dies is a crash; in both cases a new process
continues with the next model. Counts are saved continually, and a campaign that was stopped continues from the saved state.
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
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from fuzz.engines import TURNS, engine_of, limits_of, turns_of
from fuzz.worker import PROGRESS
from oplet.model.files.atomic_write import write_atomically
from oplet_tools.processes import python_process

__all__ = ["FAILURES", "Campaign"]

#: Seconds after which a model counts as a hang: of processor time, as other programs may slow the machine down; and of wall-clock time. With
#: the default limits a single call of numpy or of an engine may take 20 s, on tensors of gigabytes.
_HANG_SECONDS = 40.0
_HANG_CLOCK = 240.0

#: Additional seconds for a worker's start: Python starts, seeds are read, and engines are loaded.
_START_SECONDS = 240.0

#: Environment variables of a worker: one thread.
_SETTINGS = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}

#: Numbers that a process runs before it is replaced.
_NUMBERS_PER_PROCESS = 40_000

#: Most numbers that are kept for a finding.
_KEPT = 5

#: Values in the shared page besides the running number: nothing runs yet; -1 means that all were run.
_STARTING = -2

#: Kinds of outcomes that count as failures.
FAILURES = ("crash", "hang", "escaped", "memory", "slow", "wrong", "warned")


class Campaign:
    """A campaign over the numbers `first` to `first + count - 1`.

    Attributes:
        turns: the engines, with their shares of the numbers.
        next: the number that each engine continues from.
        counts: numbers of outcomes by engine, limits, kind, stage and error.
        findings: failures by engine, kind and place: their number, and the first models' numbers with messages.
        times: the running time of each engine's processes, in seconds.
    """

    def __init__(
        self,
        count: int,
        first: int = 0,
        places: Sequence[str] = (),
        state: Path | None = None,
        engines: str = TURNS,
    ) -> None:
        self.turns = turns_of(engines)
        self.stop = first + count
        self.first = first
        self.next = dict.fromkeys(self.turns, first)
        self.places = [os.path.abspath(place) for place in places]
        self.state = state
        self.times: dict[str, float] = dict.fromkeys(self.turns, 0.0)
        self._engine = next(iter(self.turns))  # of the present process
        self._answered = 0  # numbers that the process has finished
        self.counts: Counter[str] = Counter()
        self.findings: dict[str, dict[str, Any]] = {}
        if state is not None and state.exists():
            saved = json.loads(state.read_text())
            if (saved["first"], saved["places"], saved["turns"]) == (first, self.places, self.turns):
                self.next, self.times = saved["next"], saved["times"]
                self.counts, self.findings = Counter(saved["counts"]), saved["findings"]

    @property
    def clean(self) -> bool:
        """Whether there are no failures; accidents and differences do not count."""
        return not any(key.split()[1] in FAILURES for key in self.findings)

    def run(self) -> None:
        """Run until all numbers are done; an interrupt saves the counts."""
        with tempfile.TemporaryDirectory() as scratch:
            page_path = os.path.join(scratch, "page")
            Path(page_path).write_bytes(PROGRESS.pack(-1))
            with open(page_path, "r+b") as file:
                page = mmap.mmap(file.fileno(), PROGRESS.size)
            try:
                while min(self.next.values()) < self.stop:
                    self._engine = min(self.next, key=lambda name: self.next[name])
                    self._process(page_path, page)
            finally:
                self.save()

    def _process(self, page_path: str, page: mmap.mmap) -> None:
        """Run a worker until it finishes its share, dies or hangs."""
        engine, first = self._engine, self.next[self._engine]
        share = self.first + ((first - self.first) // _NUMBERS_PER_PROCESS + 1) * _NUMBERS_PER_PROCESS
        stop = min(self.stop, share)
        self._answered = 0
        PROGRESS.pack_into(page, 0, _STARTING)
        with tempfile.TemporaryFile() as errors:
            told = {
                "page": page_path, "engine": engine, "turns": self.turns, "first": first, "stop": stop, "places": self.places
            }  # fmt: skip
            arguments = ["-m", "fuzz.worker", json.dumps(told)]
            places = [Path(__file__).parents[1]]
            pipe = subprocess.PIPE
            with python_process(arguments, environment=_SETTINGS, folders=places, stdout=pipe, stderr=errors) as process:
                hung = self._watch(process, page)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(5)
            number = PROGRESS.unpack_from(page)[0]
            if number == -1:
                self.next[engine] = stop
            else:
                errors.seek(0)
                words = errors.read().decode("utf-8", "replace")
                if number == _STARTING:
                    raise RuntimeError(f"The worker of {engine} does not start:\n{words}")
                kind = "hang" if hung else "crash"
                place = next((line.strip() for line in words.splitlines() if "/oplet" in line), "?")
                outcome = [kind, "?", f"exit {process.returncode}", place[-120:], words[:200] + words[-600:]]
                self.find(number, limits_of(number), *outcome)
                self.next[engine] = number + 1
        self._answered = 0
        self.save()

    def _watch(self, process: subprocess.Popen[bytes], page: mmap.mmap) -> bool:
        """Read the worker's output until it ends; returns True if it had to be stopped."""
        stream = process.stdout
        if stream is None:
            return False
        os.set_blocking(stream.fileno(), False)
        rest = b""
        last = PROGRESS.unpack_from(page)[0]
        started = since = saved = time.monotonic()
        used = _processor_seconds(process.pid)
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
                    self.times[self._engine] += now - started
                    return False
                if number != last:
                    last, since, used = number, now, _processor_seconds(process.pid)
                elif now - since > _HANG_SECONDS:
                    longer = _START_SECONDS if number == _STARTING else 0
                    spent = _processor_seconds(process.pid) - used
                    if spent > _HANG_SECONDS + longer or now - since > _HANG_CLOCK + 4 * longer:
                        process.send_signal(signal.SIGABRT)  # makes faulthandler print the traceback
                        process.wait()
                        for line in (rest + (stream.read() or b"")).split(b"\n"):
                            if line:
                                self._line(line.decode())
                        self.times[self._engine] += now - started
                        return True
                if now - saved > 20:
                    saved = now
                    self.save()
                time.sleep(0.05)

    def _line(self, line: str) -> None:
        if line.startswith("["):
            self.find(*json.loads(line))
        else:
            self.counts[f"{self._engine} {line.strip()}"] += 1
        self._answered += 1

    def find(self, number: int, limits: str, kind: str, stage: str, error: str, place: str, message: str) -> None:
        """Note a finding."""
        self.counts[f"{self._engine} {limits} {kind} {stage} {error}"] += 1
        found = self.findings.setdefault(f"{self._engine} {kind} {error} {place}", {"count": 0, "examples": []})
        found["count"] += 1
        if len(found["examples"]) < _KEPT:
            found["examples"].append([number, message])

    def _reached(self) -> dict[str, int]:
        """The number that each engine continues from, after those that the present process has finished."""
        reached = dict(self.next)
        number, left = reached[self._engine], self._answered
        while left > 0:
            left -= engine_of(number, self.turns) == self._engine
            number += 1
        reached[self._engine] = number
        return reached

    def save(self) -> None:
        """Write counts and findings to the state file."""
        if self.state is not None:
            write_atomically(self.state, json.dumps(self.content(), indent=1))

    def content(self) -> dict[str, Any]:
        """The contents of the state file."""
        return {
            "first": self.first,
            "next": self._reached(),
            "stop": self.stop,
            "places": self.places,
            "turns": self.turns,
            "times": self.times,
            "models": sum(self.counts.values()),
            "counts": dict(self.counts.most_common()),
            "findings": dict(sorted(self.findings.items(), key=lambda item: -item[1]["count"])),
        }


def _processor_seconds(pid: int) -> float:
    """The processor time that a process has used."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
