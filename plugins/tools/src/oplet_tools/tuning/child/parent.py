"""Parent side of measuring a model in a child process, which is restarted without the candidate that crashed it."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import IO, TYPE_CHECKING, Any

from numpy.typing import NDArray

from oplet import write_atomically
from oplet.errors import text_of
from oplet.texts import one_line
from oplet_tools.processes import PIPE, in_background, python_process
from oplet_tools.tuning.child.trial_json import read_candidate, read_trial, written, written_array
from oplet_tools.tuning.trials import CLOSE, Bounds, Trial, Watcher

if TYPE_CHECKING:
    from oplet import Model
    from oplet_tools.tuning.candidates import Candidate
    from oplet_tools.tuning.child.job import Job

__all__ = ["ChildError", "measure_in_child"]

#: The child's code. Its first line is not oplet's to read: oplet itself may stand in a folder that only this process looks into.
_CODE = """
import json, os, sys
told = json.loads(sys.stdin.buffer.readline())
os.chdir(told["folder"])
sys.path[:] = told["search"]
from oplet_tools.tuning.child.measuring import serve
serve(told)
"""
#: Seconds for the child to start, which imports the plugins.
_START = 120.0
#: Seconds between two looks whether Ctrl-C was pressed; only Windows needs them.
_LOOK = 1.0
#: Longest text of a child's last words.
_WORDS = 200


class ChildError(Exception):
    """No child process could measure candidates; the message is worded to follow "since"."""


class _Ended(Exception):
    """The child crashed, or was killed because it hung, while a candidate ran."""


def measure_in_child(
    model: Model,
    job: Job,
    *,
    inputs: Mapping[int, NDArray[Any]],
    bounds: Bounds,
    known: dict[Candidate, Trial],
    watcher: Watcher | None = None,
) -> list[Trial]:
    """Measure every candidate for a model in a child process. If one crashes it, a new process measures the remaining ones.

    Args:
        job: how the child opens the model.
        inputs: values by tensor index.
        bounds: limits of the measurement.
        known: results of candidates that are not measured again; candidates that crash the child are added.
        watcher: receives progress reports.

    Raises:
        ChildError: no child can be started here, or it ended before it measured anything.
    """
    if any(value.dtype.hasobject for value in inputs.values()):
        raise ChildError("its inputs are texts")
    spent = 0.0
    first: Candidate | None = None
    while True:
        start = time.monotonic()
        # What is slow or wrong is not run again in a new process; what the others are compared with must be.
        best = min((t.seconds for t in known.values() if not t.why and t.seconds is not None), default=0.0)
        kept = [t for t in known.values() if t.crashed or (t.candidate != first and (t.why or (t.seconds or 0.0) > CLOSE * best))]
        left = bounds._replace(max_seconds=max(0.0, bounds.max_seconds - spent))
        try:
            with tempfile.TemporaryDirectory(prefix="oplet-tuning-") as folder:
                told = _told(folder, model, job, inputs, left, kept)
                with tempfile.TemporaryFile() as words:
                    follower = _Follower(words, bounds.way_seconds, watcher)
                    return follower.trials(told)
        except OSError as error:
            raise ChildError(f"no process can be started here ({error.strerror or text_of(error)})") from error
        except _Ended as ended:
            candidate = follower.running
            if candidate is None:
                raise ChildError(f"the process that measures did not get so far: {ended}") from ended
            first = first or follower.first
            known.update(follower.known)
            trial = Trial(candidate, why=str(ended), crashed=True)
            known[candidate] = trial
            if watcher is not None:
                watcher.ended(trial)
            # A candidate that never came back does not use up the time of the others.
            spent += follower.begun - start


def _told(
    folder: str, model: Model, job: Job, inputs: Mapping[int, NDArray[Any]], bounds: Bounds, known: list[Trial]
) -> dict[str, Any]:
    path = job.path
    if not path:
        path = os.path.join(folder, "model.tflite")
        write_atomically(path, bytes(model.data))
    return {
        "folder": os.getcwd(),
        "search": sys.path,
        "job": job.to_json(),
        "path": path,
        "inputs": {str(index): written_array(value) for index, value in inputs.items()},
        "bounds": bounds._asdict(),
        "known": [written(trial) for trial in known],
        "alarm": bounds.way_seconds,
    }


class _Follower:
    """Follows one child process: sends it the job and collects its reports.

    Args:
        words: a file that takes the child's standard error.
        seconds: seconds after which the child is killed if a candidate is not done; there is no limit for the first candidate.
        watcher: follows the measurement.
    """

    def __init__(self, words: IO[bytes], seconds: float, watcher: Watcher | None) -> None:
        self._words = words
        self._seconds = seconds
        self._watcher = watcher
        #: The candidate that runs, and when it began; the first of all; the trials that are done.
        self.running: Candidate | None = None
        self.begun = time.monotonic()
        self.first: Candidate | None = None
        self.known: dict[Candidate, Trial] = {}

    def trials(self, told: Mapping[str, Any]) -> list[Trial]:
        """Send the child the message `told`, which describes the measurement, and return the trials that it reports.

        Raises:
            _Ended: the process ended, or was killed because a candidate hung.
            ChildError: the child reports that it cannot measure.
            OSError: the process cannot be started.
        """
        with python_process(["-c", _CODE], stdin=PIPE, stdout=PIPE, stderr=self._words, **in_background()) as process:
            pipe: Any = process.stdin
            with suppress(BrokenPipeError):  # its exit code says more
                pipe.write(json.dumps(told).encode() + b"\n")
                pipe.flush()
            for event in self._events(process):
                if "done" in event:
                    return [read_trial(trial) for trial in event["done"]]
                if "failed" in event:
                    raise ChildError(f"the process that measures failed: {event['failed']}")
                self._note(event)
            raise _Ended(self._last_words(process.wait()))

    def _note(self, event: Mapping[str, Any]) -> None:
        if "runs" in event:
            self.running = read_candidate(event["runs"])
            self.begun = time.monotonic()
            self.first = self.first or self.running
            if self._watcher is not None and (event["final"] or self.running not in self.known):
                self._watcher.runs(self.running, float(event["part"]), bool(event["final"]))
        elif "trial" in event:
            trial = read_trial(event["trial"])
            self.known[trial.candidate] = trial
            if self._watcher is not None and not trial.crashed:
                self._watcher.ended(trial)

    def _events(self, process: Any) -> Iterator[dict[str, Any]]:
        lines: SimpleQueue[bytes] = SimpleQueue()
        threading.Thread(target=_read, args=(process.stdout, lines.put), name="oplet-tuning", daemon=True).start()
        while True:
            try:
                line = lines.get(timeout=_LOOK)
            except Empty:
                if time.monotonic() - self.begun > self._limit():
                    process.kill()
                    raise _Ended(f"it was not done after {self._limit():g} s, and was stopped") from None
                continue
            if not line:
                return
            yield json.loads(line)

    def _limit(self) -> float:
        if self.running is None:
            return _START
        return float("inf") if self.running == self.first else self._seconds

    def _last_words(self, code: int) -> str:
        self._words.seek(0, os.SEEK_END)
        self._words.seek(max(0, self._words.tell() - 4096))
        lines = [line for line in self._words.read().decode("utf-8", "replace").splitlines() if line.strip()]
        said = f" ({one_line(lines[-1], _WORDS)})" if lines else ""
        return f"it ended its process: {_cause(code)}{said}"


def _read(stream: IO[bytes], put: Callable[[bytes], None]) -> None:
    """Pass the lines of a stream to `put`, and b"" at its end."""
    with stream:
        for line in stream:
            if line.endswith(b"\n"):  # the last one may be cut off
                put(line)
    put(b"")


def _cause(code: int) -> str:
    """Describe the cause of a process's end, from its exit code."""
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return f"{name}, as where memory ran out" if name == "SIGKILL" else name
    return f"exit code {code:#x}" if code > 0xFFFF else f"exit code {code}"
