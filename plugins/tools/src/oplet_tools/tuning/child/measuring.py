"""The main loop of the child process that measures: it reads one line of JSON, and writes a line for whatever begins or is done.

The first line that comes in (see `parent`) has the job, the search path for modules and the current folder; when that pipe ends, so does
the process. What engines print goes to standard error, so that it is not taken for a report.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from oplet import Model
from oplet.errors import text_of
from oplet_tools.tuning.candidates import Candidate, builtin_operators
from oplet_tools.tuning.child.job import Job
from oplet_tools.tuning.child.trial_json import read_array, read_trial, written
from oplet_tools.tuning.trials import Bounds, Trial, measure

__all__ = ["serve"]

#: Seconds beyond those that the parent waits: then the process ends itself, as a loop in an engine does not see the pipe's end.
_GRACE = 30


def serve(told: Mapping[str, Any]) -> None:
    """Run the measurement that the parent process requests, write the results to standard output as JSON, and end this process."""
    reports = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    threading.Thread(target=_end_with_the_parent, daemon=True).start()

    def report(**event: Any) -> None:
        reports.write(json.dumps(event) + "\n")
        reports.flush()

    try:
        report(done=[written(trial) for trial in _trials(told, report)])
    except Exception as error:
        report(failed=text_of(error))
    os._exit(0)  # nothing that engines do at the end of a process matters any more


class _Reporter:
    """Reports to the parent, and sets a timer that ends the process if a candidate hangs."""

    def __init__(self, report: Callable[..., None], seconds: float) -> None:
        self._report = report
        self._seconds = seconds

    def runs(self, candidate: Candidate, part: float, final: bool) -> None:
        self._report(runs=written(candidate), part=part, final=final)
        if hasattr(signal, "alarm") and self._seconds:
            signal.alarm(int(self._seconds) + _GRACE)

    def ended(self, trial: Trial) -> None:
        self._report(trial=written(trial))


def _trials(told: Mapping[str, Any], report: Callable[..., None]) -> list[Trial]:
    job = Job.from_json(told["job"])
    manager = job.manager()
    known = [read_trial(trial) for trial in told["known"]]
    inputs = {int(index): read_array(value) for index, value in told["inputs"].items()}
    path: str = told["path"]
    return measure(
        lambda prefer, delegates: job.open(manager, path, prefer, delegates),
        manager,
        builtin_operators(Model.open(path)),
        inputs=inputs,
        bounds=Bounds(**told["bounds"]),
        known={trial.candidate: trial for trial in known},
        watcher=_Reporter(report, told["alarm"]),
    )


def _end_with_the_parent() -> None:
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(1)
