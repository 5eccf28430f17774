"""Chooses the fastest way of running a model: read from the cache, or measured and stored there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from oplet import Interpreter, __version__
from oplet.errors import DelegateError, DelegateLoadError, OpletError, text_of
from oplet.texts import logger_of
from oplet.toolkit import AUTO, Preference
from oplet_predictor.arguments import parse_delegate
from oplet_tools.tuning.candidates import Candidate, builtin_operators, delegate_names, kernel_sets
from oplet_tools.tuning.child.job import Job, job_of
from oplet_tools.tuning.child.parent import ChildError, measure_in_child
from oplet_tools.tuning.child.trial_json import read_candidate, read_trial, written
from oplet_tools.tuning.choice_cache import choice_file, choice_key, load_choice, store_choice, stored_file
from oplet_tools.tuning.trials import DEFAULT_BOUNDS, Bounds, Open, Progress, Trial, Watcher, fastest, measure

if TYPE_CHECKING:
    from oplet import Delegate, Model, PluginManager

__all__ = ["Choice", "auto_bounds", "choose", "choose_for_interpreter", "settings_in_key"]

#: Settings of an interpreter that no choice depends on: how its file is read makes no engine faster.
_IRRELEVANT = frozenset({"use_mmap"})

logger = logger_of("oplet.tuning")


@dataclass(frozen=True)
class Choice:
    """The candidate that was chosen, and the trials that it was chosen from."""

    candidate: Candidate  #: The fastest candidate within the tolerance; the built-in kernels alone if nothing could be measured.
    trials: tuple[Trial, ...]  #: The result of each candidate, in the order in which they were measured.
    remembered: bool = False  #: Whether it was read from the cache, in place of being measured now.
    path: str = ""  #: The cache file that holds it, "" if none does.
    in_process: str = ""  #: The reason why candidates were measured in this process; "" if they were in a child process.

    def __str__(self) -> str:
        """Summarize the chosen candidate, the times and what crashed in a few words, for logs and reports."""
        crashed = (f"; {trial.candidate} is left out: {trial.why}" for trial in self.trials if trial.crashed)
        return self._chosen() + "".join(crashed)

    def _chosen(self) -> str:
        times = {trial.candidate: trial.seconds for trial in self.trials}
        mine, plain = times.get(self.candidate), self.trials[0].seconds if self.trials else None
        if mine is None:
            return f"auto took {self.candidate}, nothing could be measured: {self.trials[0].why if self.trials else ''}"
        said = f"auto chose {self.candidate}: {mine * 1e3:.3g} ms"
        if plain is not None and self.candidate != self.trials[0].candidate:
            said += f", {self.trials[0].candidate} {plain * 1e3:.3g} ms"
        return said


def choose_for_interpreter(
    text: str,
    model: Model,
    manager: PluginManager,
    interpreter: partial[Any],
    prefer: str | Iterable[str] | Mapping[str, str] | Preference | None,
) -> tuple[Choice, list[Delegate], Preference]:
    """Resolve `experimental_delegates="auto"`: return the choice, its delegates, and the preferred plugins.

    Args:
        text: "auto", or with options: "auto:max_error=0.001,max_seconds=5".
        manager: the installed plugins.
        interpreter: makes an interpreter of the model; takes `experimental_delegates` and `prefer`.
        prefer: the plugins that the user prefers; they go before those of the choice.

    Raises:
        DelegateLoadError: the text is not "auto", or its options are wrong.
    """
    wanted = Preference.read(prefer)
    told = interpreter.keywords
    find: Callable[..., Choice] = partial(
        choose,
        model,
        manager,
        lambda preferred, delegates: interpreter(
            experimental_delegates=delegates, prefer=wanted.before(Preference.read(preferred))
        ),
        version=__version__,
        num_threads=told["num_threads"] or 1,
        options=settings_in_key(told, wanted),
        bounds=auto_bounds(text),
        job=job_of(interpreter, manager, wanted),
    )
    choice = find()
    try:
        delegates = choice.candidate.make_delegates(manager)
    except OpletError as error:  # possible though the versions are the same: a device is gone, say
        logger.warning("%s, but it cannot be had any more, so all is measured again: %s", choice, text_of(error))
        choice = find(again=True, job="a process of its own has what this one has not")
        delegates = choice.candidate.make_delegates(manager)
    return choice, delegates, wanted.before(Preference.read(choice.candidate.prefer))


def settings_in_key(keywords: Mapping[str, Any], prefer: Preference) -> list[str]:
    """Return an interpreter's settings that its choice depends on, as texts in the cache key. A default that is given explicitly
    adds nothing, so that equal interpreters have equal keys.

    Args:
        keywords: the interpreter's keyword arguments.
        prefer: the plugins that the user prefers.
    """
    defaults = {name: parameter.default for name, parameter in signature(Interpreter.__init__).parameters.items()}
    changed = {name for name, value in keywords.items() if isinstance(value, (bool, Enum)) and value != defaults.get(name)}
    return [*prefer.names, *(f"{op}={name}" for op, name in prefer.by_op), *sorted(changed - _IRRELEVANT)]


def choose(
    model: Model,
    manager: PluginManager,
    open: Open,
    *,
    version: str,
    job: Job | str,
    num_threads: int = 1,
    options: Sequence[str] = (),
    bounds: Bounds = DEFAULT_BOUNDS,
    inputs: Mapping[int, NDArray[Any]] | None = None,
    again: bool = False,
    progress: Progress | None = None,
) -> Choice:
    """Return the chosen candidate for a model: from the cache, or else measured and stored.

    Args:
        manager: the installed plugins.
        open: makes an interpreter of the model, given preferred plugins and delegates.
        version: oplet's version; a choice that another version stored does not count.
        job: how a child process opens the model; or the reason why none can, and this process measures.
        num_threads: threads that the model runs with.
        options: further settings of the interpreter that the choice depends on, as texts in the cache key.
        bounds: the largest error of a choice, and limits of time.
        inputs: values by tensor index to measure with; random values for the others.
        again: measure even if the cache has a choice.
        progress: called with the name of a step, and the fraction of it that is done, 0 to 1.
    """
    key = choice_key(model, manager, version, max_error=bounds.max_error, num_threads=num_threads, options=list(options))
    content = None if again else load_choice(key)
    if content is not None:
        try:
            trials = tuple(read_trial(trial) for trial in content["trials"])
            choice = Choice(_possible(read_candidate(content["choice"]), model, manager), trials, True, stored_file(key))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            logger.warning("%s is damaged, all is measured again: %s", choice_file(key), text_of(error))
        else:
            logger.info("%s (remembered in %s)", choice, choice.path or "this process")
            return choice
    logger.info("Measuring the ways of running %s; this is done once.", model.name)
    trials, in_process = _measured(
        model, manager, open, job, {} if inputs is None else inputs, bounds, _Teller(model.name, progress)
    )
    able = fastest(trials)
    best = (able or trials[0]).candidate
    choice = Choice(best, trials, in_process=in_process)
    if able is not None:
        path = store_choice(key, {"choice": written(best), "trials": [written(trial) for trial in trials]})
        choice = Choice(best, trials, path=path, in_process=in_process)
    logger.info("%s", choice)
    return choice


#: What a progress bar says of the finalists' turns.
_ONCE_MORE = "the fastest once more, in turns"


class _Teller:
    """A `Watcher` that reports progress, and candidates that crashed, to the user."""

    def __init__(self, model: str, progress: Progress | None) -> None:
        self._model = model
        self._progress = progress
        self._parts: dict[str, float] = {}

    def runs(self, candidate: Candidate, part: float, final: bool) -> None:
        self._tell(_ONCE_MORE if final else str(candidate), part)

    def ended(self, trial: Trial) -> None:
        self._tell(str(trial.candidate), 1.0)
        if trial.crashed:
            logger.warning("%s is left out for %s: %s.", trial.candidate, self._model, trial.why)

    def _tell(self, what: str, part: float) -> None:
        """Report that the fraction `part` of the phase `what` is done; it never falls, even if something is measured again."""
        if self._progress is not None:
            self._parts[what] = max(part, self._parts.get(what, 0.0))
            self._progress(what, self._parts[what])


def _measured(
    model: Model,
    manager: PluginManager,
    open: Open,
    job: Job | str,
    inputs: Mapping[int, NDArray[Any]],
    bounds: Bounds,
    watcher: Watcher,
) -> tuple[tuple[Trial, ...], str]:
    """Measure all candidates; return the trials, and the reason why they were run in this process; "" if a child process ran
    them.
    """
    known: dict[Candidate, Trial] = {}
    if isinstance(job, str):
        reason = job
    else:
        try:
            return tuple(measure_in_child(model, job, inputs=inputs, bounds=bounds, known=known, watcher=watcher)), ""
        except ChildError as error:
            reason = str(error)
    logger.info("%s is measured in this process, since %s.", model.name, reason)
    crashed = {candidate: trial for candidate, trial in known.items() if trial.crashed}
    trials = measure(open, manager, builtin_operators(model), inputs=inputs, bounds=bounds, known=crashed, watcher=watcher)
    return tuple(trials), reason


def _possible(candidate: Candidate, model: Model, manager: PluginManager) -> Candidate:
    """Return the candidate, read from a cache file that may be somebody else's, if it can run on this machine.

    Raises:
        ValueError: it names plugins or delegates that are not installed or not for this model.
    """
    delegates = candidate.delegates
    known = len(set(delegates)) == len(delegates) and set(delegates) <= set(delegate_names(manager))
    if not known or replace(candidate, delegates=()) not in kernel_sets(manager, builtin_operators(model)):
        raise ValueError(f"'{candidate}' is no way of running this model with what is installed")
    return candidate


def auto_bounds(text: str) -> Bounds:
    """Parse the bounds that "auto" or "auto:max_error=...,max_seconds=..." sets.

    Raises:
        DelegateLoadError: the text is not "auto", or has other options.
    """
    try:
        name, options = parse_delegate(text)
        values = {key: float(value) for key, value in options.items()}
        if name == AUTO and values.keys() <= set(Bounds._fields) and all(value >= 0 for value in values.values()):
            return Bounds(**values)
    except (DelegateError, ValueError):
        pass
    raise DelegateLoadError(
        f"experimental_delegates is {text!r}; give a list of delegates (`load_delegate` makes them), or 'auto', with options "
        "if need be: 'auto:max_error=0.001,max_seconds=5'."
    )
