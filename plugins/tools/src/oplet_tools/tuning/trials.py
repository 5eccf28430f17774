"""Trials: each candidate runs the model on the same values, and its time and errors are measured.

Candidates are measured one after another, and dropped as soon as they are clearly slower. Those within a quarter of the fastest
are measured again in turns, since the speed of a machine changes from one second to the next.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from oplet.errors import DelegateError, failures, text_of
from oplet_tools.tuning.candidates import Candidate, delegate_names, kernel_sets
from oplet_tools.tuning.differences import Difference, largest_error, output_differences
from oplet_tools.tuning.random_inputs import random_input
from oplet_tools.tuning.timed_interpreter import TimedInterpreter
from oplet_tools.tuning.tolerances import ModelKind, Tolerance, kind_of, tolerance_for

if TYPE_CHECKING:
    from oplet import Delegate, Interpreter, PluginManager
    from oplet.schema.enums import BuiltinOperator

__all__ = ["CLOSE", "DEFAULT_BOUNDS", "Bounds", "Open", "Progress", "Trial", "Watcher", "fastest", "measure"]

Array = NDArray[Any]
#: Makes an interpreter of the model, given which plugins are preferred, and the delegates.
Open = Callable[[Sequence[str], "Sequence[Delegate]"], "Interpreter"]
#: Called with what is measured now, and how much of that is done: 0 when it begins, 1 when it is over.
Progress = Callable[[str, float], None]


class Watcher(Protocol):
    """Protocol: receives reports while candidates (ways of running a model) are measured."""

    def runs(self, candidate: Candidate, part: float, final: bool) -> None:
        """Report that a candidate is about to run; `part` is the fraction done of its runs or, if `final`, of the repeated runs
        of the fastest candidates.
        """

    def ended(self, trial: Trial) -> None:
        """Report that a candidate was measured."""


#: The most and the fewest timed runs of a candidate.
_RUNS, _LEAST_RUNS = 30, 3
#: Seconds after which a candidate's runs end, though there are fewer than `_RUNS`.
_SECONDS_EACH = 0.5
#: A candidate whose best run takes so many times the fastest one's is not run any more.
_TOO_SLOW = 2.0
#: Candidates within this factor of the fastest are finalists, which are measured again in turns.
CLOSE = 1.25
#: The most rounds of the finalists, and the seconds after which no other round begins.
_FINAL_ROUNDS, _FINAL_SECONDS = 15, 4.0
#: Rounds of the kernels alone, before the fastest of them are those that delegates stand in front of.
_KERNEL_ROUNDS = 3
#: Runs of a finalist in one round. The first one does not count: the previous finalist's threads may still spin on a core.
_TURN = 6


class Bounds(NamedTuple):
    """Limits of a measurement."""

    #: The largest error of an output as a fraction of its largest magnitude; None for the tolerances of `oplet compare`. Twice
    #: the model's own sensitivity to rounding errors of inputs (`output_sensitivity`) passes in any case.
    max_error: float | None = None
    max_seconds: float = 60.0  #: Seconds after which no further candidate is started; the current one is finished.
    way_seconds: float = 300.0  #: Time limit of one candidate in a child process, in seconds; the built-in kernels have none.


DEFAULT_BOUNDS = Bounds()


@dataclass(frozen=True)
class Trial:
    """The measurement of one candidate."""

    candidate: Candidate
    #: The time of an invoke, None if it was not run: the lower quartile of its runs, as other processes only add to them.
    seconds: float | None = None
    #: The largest error of its outputs relative to those of the built-in kernels, as a fraction of an output's largest magnitude;
    #: None if either did not run.
    error: float | None = None
    claimed: tuple[int, ...] = ()  #: The number of nodes that each of its delegates claimed, in order.
    nodes: int = 0  #: The number of nodes of the model.
    why: str = ""  #: The reason why it cannot be chosen; "" if it can.
    crashed: bool = False  #: Whether it crashed or hung the process that measured it.
    #: The seconds from opening the model to its first answer, compiling and allocating included; None without an answer.
    ready: float | None = None


def fastest(trials: Iterable[Trial]) -> Trial | None:
    """Return the fastest trial that can be chosen; None if none can be."""
    able = [trial for trial in trials if not trial.why and trial.seconds is not None]
    return min(able, key=lambda trial: trial.seconds or 0.0, default=None)


class _Measurement:
    """State of a measurement: trials so far, and interpreters of candidates that may be the fastest ("finalists")."""

    def __init__(
        self, open: Open, manager: PluginManager, inputs: dict[int, Array], max_error: float | None, until: float
    ) -> None:
        self._open = open
        self._manager = manager
        self._inputs = inputs
        self._max_error = max_error
        self._sensitivities: list[float] = []
        self._kind = ModelKind.FLOAT32
        self._until = until
        self._reference: list[Array] | None = None
        self.trials: dict[Candidate, Trial] = {}
        self._finalists: dict[Candidate, TimedInterpreter] = {}

    def measure(self, candidate: Candidate, tell: Callable[[float], None], known: Trial | None = None) -> Trial:
        """Measure a candidate, unless its trial is `known` or no time is left; `tell` is called between runs with the fraction
        done.
        """
        if known is not None:
            trial = known
        elif self.trials and time.monotonic() > self._until:
            trial = Trial(candidate, why="there was no time left to measure it")
        else:
            trial = self._run_trial(candidate, tell)
        self.trials[candidate] = trial
        return trial

    def _run_trial(self, candidate: Candidate, tell: Callable[[float], None]) -> Trial:
        interpreter: Interpreter | None = None
        trial, begun = Trial(candidate), time.monotonic()
        try:
            interpreter = self._open(candidate.prefer, candidate.make_delegates(self._manager))
            trial = _with_claims(trial, interpreter)
            if candidate.delegates and not all(trial.claimed):
                raise DelegateError(_unclaimed(candidate, interpreter, trial.claimed))
            self._add_random_inputs(interpreter)
            runner = TimedInterpreter(interpreter, self._inputs)
            trial = replace(trial, ready=time.monotonic() - begun)
        except failures() as error:  # a third-party delegate may raise anything; the other candidates are still measured
            if interpreter is not None:
                interpreter.close()
            return replace(trial, why=_first_line(error))
        if not self.trials:
            self._reference = runner.outputs
            self._sensitivities = runner.sensitivities()
            self._kind = kind_of(node for subgraph in runner.interpreter.subgraphs for node in subgraph.nodes)
        found = [] if self._reference is None else self._judge(runner)
        trial = replace(trial, error=None if self._reference is None else largest_error(found))
        wrong = next((difference for difference in found if not difference.passed), None)
        if wrong is not None:
            runner.close()
            return replace(trial, seconds=runner.first, why=_why(wrong))
        trial = replace(trial, seconds=self._time(runner, tell))
        self._finalists[candidate] = runner
        self._close_slow(trial)
        return trial

    def _judge(self, runner: TimedInterpreter) -> list[Difference]:
        """Return the difference of each output from that of the built-in kernels."""
        return output_differences(runner.outputs, self._reference or (), runner.details, self._tolerance, self._sensitivities)

    def _tolerance(self, dtype: np.dtype[Any], quantized: bool) -> Tolerance:
        if self._max_error is None:
            return tolerance_for(dtype, quantized, self._kind)
        return Tolerance(f"{self._max_error:g}", self._max_error, None)

    def _add_random_inputs(self, interpreter: Interpreter) -> None:
        """Add random values for inputs without given values; every candidate gets the same."""
        random = np.random.default_rng(0)
        for details in interpreter.get_input_details():
            if details["index"] not in self._inputs:
                self._inputs[details["index"]] = random_input(details, random)

    def _time(self, runner: TimedInterpreter, tell: Callable[[float], None]) -> float:
        best = min((t.seconds for t in self.running() if t.seconds is not None), default=float("inf"))
        seconds: list[float] = []
        start = time.monotonic()
        runner.time()
        while len(seconds) < _LEAST_RUNS or (len(seconds) < _RUNS and time.monotonic() - start < _SECONDS_EACH):
            seconds.append(runner.time())
            tell(max(len(seconds) / _RUNS, min((time.monotonic() - start) / _SECONDS_EACH, len(seconds) / _LEAST_RUNS, 1.0)))
            if min(seconds) > _TOO_SLOW * best:
                break
        return _typical(seconds)

    def running(self) -> list[Trial]:
        """Return the trials that can be chosen, the fastest first."""
        return sorted((t for t in self.trials.values() if not t.why), key=lambda trial: trial.seconds or 0.0)

    def _close_slow(self, latest: Trial) -> None:
        """Close interpreters of candidates that cannot be the fastest any more, as each may take the memory of a large model."""
        trials = {**self.trials, latest.candidate: latest}
        best = min(t.seconds for t in trials.values() if not t.why and t.seconds is not None)
        for candidate in list(self._finalists):
            if (trials[candidate].seconds or 0.0) > CLOSE * best:
                self._finalists.pop(candidate).close()

    def measure_finalists(self, tell: Callable[[Candidate, float], None], most: int = _FINAL_ROUNDS) -> None:
        """Measure the fastest candidates again, in turns, and update their trials; `tell` is called before each turn with the
        fraction that is done.
        """
        if len(self._finalists) > 1:
            seconds: dict[Candidate, list[float]] = {candidate: [] for candidate in self._finalists}
            start, part = time.monotonic(), 0.0
            for rounds in range(1, most + 1):
                for candidate, runner in self._finalists.items():
                    tell(candidate, part)
                    seconds[candidate] += [runner.time() for _ in range(_TURN)][1:]
                part = max(rounds / most, (time.monotonic() - start) / _FINAL_SECONDS)
                if part >= 1.0:
                    break
            for candidate, times in seconds.items():
                self.trials[candidate] = replace(self.trials[candidate], seconds=_typical(times))
            tell(candidate, 1.0)

    def close(self) -> None:
        while self._finalists:
            self._finalists.popitem()[1].close()


def measure(
    open: Open,
    manager: PluginManager,
    ops: Sequence[tuple[BuiltinOperator, int]],
    *,
    inputs: Mapping[int, Array] | None = None,
    bounds: Bounds = DEFAULT_BOUNDS,
    known: Mapping[Candidate, Trial] | None = None,
    watcher: Watcher | None = None,
) -> list[Trial]:
    """Measure every candidate for a model, the built-in kernels alone first.

    Args:
        open: makes an interpreter of the model, given preferred plugins and delegates.
        manager: the installed plugins.
        ops: the built-in operators of the model, with their versions.
        inputs: values by tensor index; random values for the others.
        bounds: the largest error of a choice, and limits of time.
        known: results of candidates that are not measured again.
        watcher: receives progress reports.
    """
    measurement = _Measurement(open, manager, dict(inputs or {}), bounds.max_error, time.monotonic() + bounds.max_seconds)

    def runs(candidate: Candidate, part: float, final: bool = False) -> None:
        if watcher is not None:
            watcher.runs(candidate, part, final)

    def enter(candidate: Candidate) -> Trial:
        runs(candidate, 0.0)
        trial = measurement.measure(candidate, lambda part: runs(candidate, part), (known or {}).get(candidate))
        if watcher is not None:
            watcher.ended(trial)
        return trial

    try:
        sets = kernel_sets(manager, ops)
        for candidate in sets:
            enter(candidate)
        measurement.measure_finalists(lambda candidate, part: runs(candidate, part, True), _KERNEL_ROUNDS)
        running = measurement.running()
        kernels = running[0].candidate if running else sets[0]
        plain = running[0].seconds if running else None
        singles = [enter(replace(kernels, delegates=(name,))) for name in delegate_names(manager)]
        # Pairs of delegates: only of those that are faster than the kernels alone, and where the first leaves nodes to the second.
        able = [t for t in singles if not t.why and t.seconds is not None and (plain is None or t.seconds < plain)]
        for first in (trial for trial in able if sum(trial.claimed) < trial.nodes):
            for second in able:
                if second is not first:
                    enter(replace(kernels, delegates=first.candidate.delegates + second.candidate.delegates))
        measurement.measure_finalists(lambda candidate, part: runs(candidate, part, True))
    finally:
        measurement.close()
    return list(measurement.trials.values())


def _typical(seconds: Sequence[float]) -> float:
    return sorted(seconds)[len(seconds) // 4]


def _with_claims(trial: Trial, interpreter: Interpreter) -> Trial:
    reports = [report for report in interpreter.delegation_reports() if report.subgraph == 0]
    claimed = tuple(sum(map(len, report.partitions)) for report in reports)
    return replace(trial, claimed=claimed, nodes=reports[0].nodes if reports else len(interpreter.subgraphs[0].nodes))


def _unclaimed(candidate: Candidate, interpreter: Interpreter, claimed: Sequence[int]) -> str:
    name = next(name for name, count in zip(candidate.delegates, claimed) if not count)
    reports = [report for report in interpreter.delegation_reports() if report.subgraph == 0]
    reasons = [report.error or next(iter(report.unsupported.values()), "") for report in reports]
    reason = next((text for text, count in zip(reasons, claimed) if not count and text), "")
    return f"{name} claims no node" + (f": {reason}" if reason else "")


def _why(wrong: Difference) -> str:
    if wrong.why or wrong.worst is None or wrong.nonfinite_differing or wrong.allowed is None:
        return wrong.why or "its answer has NaN, infinities, text or whole numbers that are others"
    unit = " steps" if wrong.steps else ""
    return f"its error of {wrong.worst.units:.2g}{unit} is above {wrong.allowed:.2g}"


def _first_line(error: BaseException) -> str:
    text = text_of(error)
    return text if len(text) <= 300 else f"{text[:300]}..."
