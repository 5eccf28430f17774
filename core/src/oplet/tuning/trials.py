"""Run a model in every way in turn, on the same values, and time it.

Ways are measured one after another and dropped as soon as they are clearly slower; those that are close take turns in the end,
since the speed of a machine changes from one second to the next.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oplet.errors import DelegateError, failures, text_of
from oplet.tuning.candidates import Candidate, delegate_names, kernel_sets
from oplet.tuning.differences import Difference, largest_error, output_differences
from oplet.tuning.random_inputs import perturbed_input, random_input
from oplet.tuning.sensitivity import output_sensitivity
from oplet.tuning.tolerances import ModelKind, Tolerance, kind_of, tolerance_for

if TYPE_CHECKING:
    from oplet.delegates.delegate import Delegate
    from oplet.plugins.manager import PluginManager
    from oplet.runtime.interpreter import Interpreter
    from oplet.schema.enums import BuiltinOperator

__all__ = ["DEFAULT_BOUNDS", "Bounds", "Open", "Progress", "Trial", "measure"]

Array = NDArray[Any]
#: Makes an interpreter of the model, given which plugins are preferred, and the delegates.
Open = Callable[[Sequence[str], "Sequence[Delegate]"], "Interpreter"]
#: Is told what is being measured, and the part of the time that is over.
Progress = Callable[[str, float], None]

_RUNS = 30
_LEAST_RUNS = 3
#: Seconds that one candidate is run for, if so many runs have not come together before.
_SECONDS_EACH = 0.5
#: A candidate whose best run takes so many times the best one's is not run any more.
_HOPELESS = 2.0
#: Those within this factor of the fastest take turns in the end.
_CLOSE = 1.25
_FINAL_ROUNDS = 15
_FINAL_SECONDS = 4.0
#: How often one runs in its turn. The first run does not count: threads of the one before may still wait for work, on a core.
_TURN = 6


class Bounds(NamedTuple):
    """What measuring keeps to.

    Attributes:
        max_error: how far off an output may be, as a part of its scale; None for what goes with its type and the kind of model, as
            in `oplet compare`. Where the model makes more than half of that of a last bit of its inputs, twice what it makes of it.
        max_seconds: nothing is begun after so long; what is under way (a compilation, say) is not cut off.
    """

    max_error: float | None = None
    max_seconds: float = 60.0


DEFAULT_BOUNDS = Bounds()


@dataclass(frozen=True)
class Trial:
    """What came out for one candidate.

    Attributes:
        candidate: the candidate.
        seconds: the median of an invoke, None if it was not run.
        error: the largest of its outputs against the built-in kernels', as a part of an output's scale; None if either did not run.
        claimed: how many nodes its delegates claimed, in order.
        nodes: how many nodes the model has.
        why: why it cannot be chosen; "" if it can.
    """

    candidate: Candidate
    seconds: float | None = None
    error: float | None = None
    claimed: tuple[int, ...] = ()
    nodes: int = 0
    why: str = ""


class _TimedInterpreter:
    """A candidate's interpreter, ready to run."""

    def __init__(self, interpreter: Interpreter, inputs: dict[int, Array]) -> None:
        self.interpreter = interpreter
        interpreter.allocate_tensors()
        if any(tuple(d["shape"]) != inputs[d["index"]].shape for d in interpreter.get_input_details() if d["index"] in inputs):
            for index, value in inputs.items():
                interpreter.resize_tensor_input(index, value.shape)
            interpreter.allocate_tensors()
        for index, value in inputs.items():
            interpreter.set_tensor(index, value)
        self.first = self.time()
        self.details = interpreter.get_output_details()
        self.outputs = [np.array(interpreter.get_tensor(d["index"])) for d in self.details]

    def time(self) -> float:
        """The seconds of an invoke."""
        start = time.perf_counter()
        self.interpreter.invoke()
        return time.perf_counter() - start

    def sensitivities(self) -> list[float]:
        """By which part of its scale each output may be off, see `output_sensitivity`."""
        random_free = {
            d["index"]: np.array(self.interpreter.get_tensor(d["index"])) for d in self.interpreter.get_input_details()
        }
        details = {d["index"]: d for d in self.interpreter.get_input_details()}

        def answers(random: np.random.Generator | None) -> list[dict[int, Array]]:
            self.interpreter.reset_all_variables()
            for index, value in random_free.items():
                self.interpreter.set_tensor(index, value if random is None else perturbed_input(value, details[index], random))
            self.interpreter.invoke()
            return [{place: np.array(self.interpreter.get_tensor(d["index"])) for place, d in enumerate(self.details)}]

        found = output_sensitivity(answers, {place: d["quantization"] for place, d in enumerate(self.details)})
        answers(None)
        return list(found.values())

    def close(self) -> None:
        self.interpreter.close()


class _Contest:
    """The trials so far, and the runners of those that may still win."""

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
        self._runners: dict[Candidate, _TimedInterpreter] = {}

    def enter(self, candidate: Candidate) -> Trial:
        """Measure a candidate, if there is time."""
        if self.trials and time.monotonic() > self._until:
            trial = Trial(candidate, why="there was no time left to measure it")
        else:
            trial = self._try(candidate)
        self.trials[candidate] = trial
        return trial

    def _try(self, candidate: Candidate) -> Trial:
        interpreter: Interpreter | None = None
        trial = Trial(candidate)
        try:
            interpreter = self._open(candidate.prefer, candidate.make_delegates(self._manager))
            trial = _with_claims(trial, interpreter)
            if candidate.delegates and not all(trial.claimed):
                raise DelegateError(_unclaimed(candidate, interpreter, trial.claimed))
            self._complete_inputs(interpreter)
            runner = _TimedInterpreter(interpreter, self._inputs)
        except failures() as error:  # whatever a stranger's delegate does: the others are still there
            if interpreter is not None:
                interpreter.close()
            return replace(trial, why=_first_line(error))
        if not self.trials:
            self._reference = runner.outputs
            self._sensitivities = runner.sensitivities()
            self._kind = kind_of(node for subgraph in runner.interpreter._subgraphs for node in subgraph.nodes)
        found = [] if self._reference is None else self._judge(runner)
        trial = replace(trial, error=None if self._reference is None else largest_error(found))
        wrong = next((difference for difference in found if not difference.passed), None)
        if wrong is not None:
            runner.close()
            return replace(trial, seconds=runner.first, why=_why(wrong))
        trial = replace(trial, seconds=self._time(runner))
        self._runners[candidate] = runner
        self._drop_the_slow(trial)
        return trial

    def _judge(self, runner: _TimedInterpreter) -> list[Difference]:
        """How far the outputs are from the built-in kernels', and whether they are the same answer."""
        return output_differences(runner.outputs, self._reference or [], runner.details, self._tolerance, self._sensitivities)

    def _tolerance(self, dtype: np.dtype[Any], quantized: bool) -> Tolerance:
        if self._max_error is None:
            return tolerance_for(dtype, quantized, self._kind)
        return Tolerance(f"{self._max_error:g}", self._max_error, None)

    def _complete_inputs(self, interpreter: Interpreter) -> None:
        """Random values where none were given; every candidate gets the same."""
        random = np.random.default_rng(0)
        for details in interpreter.get_input_details():
            if details["index"] not in self._inputs:
                self._inputs[details["index"]] = random_input(details, random)

    def _time(self, runner: _TimedInterpreter) -> float:
        best = min((t.seconds for t in self.running() if t.seconds is not None), default=float("inf"))
        seconds: list[float] = []
        start = time.monotonic()
        runner.time()
        while len(seconds) < _LEAST_RUNS or (len(seconds) < _RUNS and time.monotonic() - start < _SECONDS_EACH):
            seconds.append(runner.time())
            if min(seconds) > _HOPELESS * best:
                break
        return statistics.median(seconds)

    def running(self) -> list[Trial]:
        """The trials that can be chosen, the fastest first."""
        return sorted((t for t in self.trials.values() if not t.why), key=lambda trial: trial.seconds or 0.0)

    def _drop_the_slow(self, latest: Trial) -> None:
        """Close the interpreters that will not be needed again: a large model is not held in memory by each."""
        trials = {**self.trials, latest.candidate: latest}
        best = min(t.seconds for t in trials.values() if not t.why and t.seconds is not None)
        for candidate in list(self._runners):
            if (trials[candidate].seconds or 0.0) > _CLOSE * best:
                self._runners.pop(candidate).close()

    def decide(self) -> None:
        """Let those that are close take turns, and note their medians."""
        if len(self._runners) > 1:
            seconds: dict[Candidate, list[float]] = {candidate: [] for candidate in self._runners}
            start = time.monotonic()
            for _ in range(_FINAL_ROUNDS):
                for candidate, runner in self._runners.items():
                    seconds[candidate] += [runner.time() for _ in range(_TURN)][1:]
                if time.monotonic() - start > _FINAL_SECONDS:
                    break
            for candidate, times in seconds.items():
                self.trials[candidate] = replace(self.trials[candidate], seconds=statistics.median(times))

    def close(self) -> None:
        while self._runners:
            self._runners.popitem()[1].close()


def measure(
    open: Open,
    manager: PluginManager,
    ops: Sequence[tuple[BuiltinOperator, int]],
    *,
    inputs: Mapping[int, Array] | None = None,
    bounds: Bounds = DEFAULT_BOUNDS,
    progress: Progress | None = None,
) -> list[Trial]:
    """Measure the ways of running a model, the built-in kernels alone first.

    Args:
        open: makes its interpreters.
        manager: the plugins that there are.
        ops: the built-in operators of the model, with their versions.
        inputs: values by tensor index; random ones where there are none.
        bounds: what to keep to.
        progress: is told before each candidate.
    """
    start = time.monotonic()
    contest = _Contest(open, manager, dict(inputs or {}), bounds.max_error, start + bounds.max_seconds)

    def enter(candidate: Candidate) -> Trial:
        if progress is not None:
            over = (time.monotonic() - start) / bounds.max_seconds if bounds.max_seconds else 1.0
            progress(str(candidate), min(1.0, over))
        return contest.enter(candidate)

    try:
        sets = kernel_sets(manager, ops)
        for candidate in sets:
            enter(candidate)
        running = contest.running()
        kernels = running[0].candidate if running else sets[0]
        plain = running[0].seconds if running else None
        singles = [enter(replace(kernels, delegates=(name,))) for name in delegate_names(manager)]
        # A delegate that is slower than the kernels would not help another one.
        able = [t for t in singles if not t.why and t.seconds is not None and (plain is None or t.seconds < plain)]
        for first in (trial for trial in able if sum(trial.claimed) < trial.nodes):
            for second in able:
                if second is not first:
                    enter(replace(kernels, delegates=first.candidate.delegates + second.candidate.delegates))
        contest.decide()
    finally:
        contest.close()
    return list(contest.trials.values())


def _with_claims(trial: Trial, interpreter: Interpreter) -> Trial:
    reports = [report for report in interpreter.delegation_reports() if report.subgraph == 0]
    claimed = tuple(sum(map(len, report.partitions)) for report in reports)
    return replace(trial, claimed=claimed, nodes=reports[0].nodes if reports else len(interpreter._get_ops_details()))


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
