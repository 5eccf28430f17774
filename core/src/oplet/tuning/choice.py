"""The fastest way of running a model: read from the cache, or measured and stored there."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from oplet.delegates.specifier import AUTO, parse_delegate
from oplet.errors import DelegateError, DelegateLoadError, OpletError, text_of
from oplet.plugins.selection import Preference
from oplet.schema.enums import BuiltinOperator
from oplet.schema.tables import operator_code
from oplet.texts import logger_of
from oplet.tuning.candidates import Candidate, delegate_names, kernel_sets
from oplet.tuning.choice_cache import choice_file, choice_key, load_choice, store_choice
from oplet.tuning.trials import DEFAULT_BOUNDS, Bounds, Open, Progress, Trial, measure

if TYPE_CHECKING:
    from oplet.delegates.delegate import Delegate
    from oplet.model.model import Model
    from oplet.plugins.manager import PluginManager

__all__ = ["Choice", "auto_bounds", "choose", "choose_for_interpreter"]

logger = logger_of("oplet.tuning")


@dataclass(frozen=True)
class Choice:
    """The candidate that was chosen, and the trials that it was chosen from.

    Attributes:
        candidate: the fastest candidate within the tolerance; the built-in kernels alone if nothing could be measured.
        trials: the result of each candidate, in the order in which they were measured.
        remembered: whether it was read from the cache, in place of being measured now.
        path: the cache file that holds it, "" if none does.
    """

    candidate: Candidate
    trials: tuple[Trial, ...]
    remembered: bool = False
    path: str = ""

    def __str__(self) -> str:
        """The chosen candidate and the times in a few words, for logs and reports."""
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
    *,
    version: str,
) -> tuple[Choice, list[Delegate], Preference]:
    """Resolve `experimental_delegates="auto"`: the choice, its delegates, and the preferred plugins.

    Args:
        text: "auto", or with options: "auto:max_error=0.001,max_seconds=5".
        model: the model.
        manager: the installed plugins.
        interpreter: makes an interpreter of the model; takes `experimental_delegates` and `prefer`.
        prefer: the user's preferences, which go before those of the choice.
        version: oplet's version.

    Raises:
        DelegateLoadError: the text is not "auto", or its options are wrong.
    """
    wanted = Preference.read(prefer)
    told = interpreter.keywords
    find = partial(
        choose,
        model,
        manager,
        lambda preferred, delegates: interpreter(
            experimental_delegates=delegates, prefer=wanted.before(Preference.read(preferred))
        ),
        version=version,
        num_threads=told["num_threads"] or 1,
        options=[
            *wanted.names,
            *(f"{op}={name}" for op, name in wanted.by_op),
            *(name for name, value in told.items() if value is True),
        ],
        bounds=auto_bounds(text),
    )
    choice = find()
    try:
        delegates = choice.candidate.make_delegates(manager)
    except OpletError as error:  # possible though the versions are the same: a device is gone, say
        logger.warning("%s, but it cannot be had any more, so all is measured again: %s", choice, text_of(error))
        choice = find(again=True)
        delegates = choice.candidate.make_delegates(manager)
    return choice, delegates, wanted.before(Preference.read(choice.candidate.prefer))


def choose(
    model: Model,
    manager: PluginManager,
    open: Open,
    *,
    version: str,
    num_threads: int = 1,
    options: Sequence[str] = (),
    bounds: Bounds = DEFAULT_BOUNDS,
    inputs: Mapping[int, NDArray[Any]] | None = None,
    again: bool = False,
    progress: Progress | None = None,
) -> Choice:
    """The choice for a model: from the cache, or else measured and stored.

    Args:
        model: the model.
        manager: the installed plugins.
        open: makes an interpreter of the model.
        version: oplet's version; a choice that another version stored does not count.
        num_threads: threads that the model runs with.
        options: further settings of the interpreter that the choice depends on.
        bounds: limits of the measurement.
        inputs: values by tensor index to measure with; random values for the others.
        again: measure even if the cache has a choice.
        progress: called with what is being measured.
    """
    key = choice_key(model, manager, version, max_error=bounds.max_error, num_threads=num_threads, options=list(options))
    content = None if again else load_choice(key)
    if content is not None:
        try:
            trials = tuple(_trial(trial) for trial in content["trials"])
            choice = Choice(_possible(_candidate(content["choice"]), model, manager), trials, True, choice_file(key))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            logger.warning("%s is damaged, all is measured again: %s", choice_file(key), text_of(error))
        else:
            logger.info("%s (remembered in %s)", choice, choice.path)
            return choice
    logger.info("Measuring the ways of running %s; this is done once.", model.name)
    trials = tuple(measure(open, manager, _builtins(model), inputs=inputs, bounds=bounds, progress=progress))
    able = [trial for trial in trials if not trial.why and trial.seconds is not None]
    best = min(able, key=lambda trial: trial.seconds or math.inf).candidate if able else trials[0].candidate
    choice = Choice(best, trials)
    if able:
        path = store_choice(key, {"choice": asdict(best), "trials": [asdict(trial) for trial in trials]})
        choice = Choice(best, trials, path=path)
    logger.info("%s", choice)
    return choice


def _candidate(content: Mapping[str, Any]) -> Candidate:
    texts = content["kernels"], *content["prefer"], *content["delegates"]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("a name is no text")
    return Candidate(content["kernels"], tuple(content["prefer"]), tuple(content["delegates"]))


def _possible(candidate: Candidate, model: Model, manager: PluginManager) -> Candidate:
    """The candidate, if it could have been chosen on this machine: a cache file may come from somebody else.

    Raises:
        ValueError: it names plugins or delegates that are not installed, or that do not serve this model.
    """
    delegates = candidate.delegates
    known = len(set(delegates)) == len(delegates) and set(delegates) <= set(delegate_names(manager))
    if not known or replace(candidate, delegates=()) not in kernel_sets(manager, _builtins(model)):
        raise ValueError(f"'{candidate}' is no way of running this model with what is installed")
    return candidate


def _trial(content: Mapping[str, Any]) -> Trial:
    seconds, error, nodes, why = (content[name] for name in ("seconds", "error", "nodes", "why"))
    numbers = *(value for value in (seconds, error) if value is not None), nodes, *content["claimed"]
    if not isinstance(why, str) or not all(isinstance(number, int | float) and not number < 0 for number in numbers):
        raise ValueError("what came out for a candidate is no number, or its reason no text")
    return Trial(_candidate(content["candidate"]), seconds, error, tuple(content["claimed"]), nodes, why)


def _builtins(model: Model) -> list[tuple[BuiltinOperator, int]]:
    return [(BuiltinOperator(operator_code(code)), code.version) for code in model.lazy_root.operator_codes or ()]


def auto_bounds(text: str) -> Bounds:
    """The bounds that "auto" or "auto:max_error=...,max_seconds=..." sets.

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
