"""What is done with a random model, in every state of two engines, and where the answers differ."""

from __future__ import annotations

import gc
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tests.random_graphs.generating import Made, Step

from oplet import Interpreter
from oplet.errors import OpletError
from oplet.runtime.memory.remembered import forget_plans

__all__ = ["STATES", "Difference", "Outcome", "differences", "in_state", "in_states", "outcomes", "plans_in"]

#: What a call answered: None, arrays, or the class of an error and what it says.
Outcome = Any
#: By name, how often the model was opened before, whether plans in memory are forgotten, and the kernels.
STATES = ("numpy", "first", "remembered", "stored", "stored again", "two threads")
#: What is raised outside `oplet.errors`.
ESCAPED = "escaped:"
#: The share of the largest value by which what is not exact may differ between engines.
_NEAR = 1e-3


class Difference(NamedTuple):
    """A model that answers otherwise in a state.

    Attributes:
        seed: its number.
        state: the state.
        step: the number of the step.
        what: the step, what was expected and what came.
    """

    seed: int
    state: str
    step: int
    what: str

    def __str__(self) -> str:
        return f"{self.seed} {self.state}, step {self.step}, {self.what}"


def in_state(made: Made, state: str) -> list[Outcome]:
    """The outcomes in the state that this process is in, with the kernels and threads of the named one."""
    settings: dict[str, Any] = {"numpy": {"plugins": ["builtin_ops"]}, "two threads": {"num_threads": 2}}.get(state, {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return outcomes(lambda: Interpreter(model_content=made.data, **settings), made)


def _values(shape: Any, dtype: Any, random: np.random.Generator) -> Any:
    if np.dtype(dtype).kind == "f":
        return (random.integers(-16, 17, shape) / 8).astype(dtype)
    return random.integers(0, 2 if np.dtype(dtype).kind == "b" else 9, shape).astype(dtype)


def run_step(interpreter: Any, step: Step, signatures: list[str]) -> Outcome:
    random = np.random.default_rng(step.seed)
    if step.what == "allocate":
        interpreter.allocate_tensors()
    elif step.what == "feed":
        for detail in interpreter.get_input_details():
            interpreter.set_tensor(detail["index"], _values(detail["shape"], detail["dtype"], random))
    elif step.what == "resize":
        for detail, shape in zip(interpreter.get_input_details(), step.shapes):
            interpreter.resize_tensor_input(detail["index"], shape)
    elif step.what == "reset":
        interpreter.reset_all_variables()
    elif step.what == "set":
        detail = interpreter.get_tensor_details()[step.place]
        interpreter.set_tensor(step.place, _values(detail["shape"], detail["dtype"], random))
    elif step.what == "sign":
        runner = interpreter.get_signature_runner(signatures[step.place])
        details = runner.get_input_details()
        shapes = {f"i{number}": shape for number, shape in enumerate(step.shapes)}
        given = {name: _values(shapes.get(name, each["shape"]), each["dtype"], random) for name, each in details.items()}
        return list(runner(**given).values())
    else:
        interpreter.invoke()
        return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]
    return None


def outcomes(interpreter: Callable[[], Any], made: Made, refusals: Any = OpletError) -> list[Outcome]:
    """What each step answers of the interpreter that is made; what is raised beside refusals has escaped."""
    found: list[Outcome] = []
    try:
        opened = interpreter()
    except refusals as error:
        return [f"{type(error).__name__}: {error}"] * len(made.steps)
    for step in made.steps:
        try:
            found.append(run_step(opened, step, made.signatures))
        except refusals as error:
            found.append(f"{type(error).__name__}: {error}")
        except Exception as error:
            found.append(f"{ESCAPED} {type(error).__name__}: {error}")
    return found


def differ(one: Outcome, other: Outcome, exact: list[bool] | None) -> str:
    """How answers differ, "" if they do not; `exact` tells which outputs must have the same bits, None all."""
    if isinstance(one, str) or isinstance(other, str) or one is None or other is None:
        told = [each.partition(":")[0] if isinstance(each, str) else "an answer" for each in (one, other)]
        return "" if told[0] == told[1] else f"{told[0]} became {told[1]}"
    for number, (a, b) in enumerate(zip(one, other, strict=True)):
        a, b = np.asarray(a), np.asarray(b)
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            return f"output {number}: {a.dtype}{list(a.shape)} became {b.dtype}{list(b.shape)}"
        if np.array_equal(a, b, equal_nan=a.dtype.kind == "f"):
            continue
        if a.dtype.kind == "f" and exact is not None and not exact[number]:
            finite = np.isfinite(a) & np.isfinite(b)
            largest = max(1.0, float(np.abs(a[finite]).max(initial=0)))
            if (np.isfinite(a) == np.isfinite(b)).all() and (np.abs(a[finite] - b[finite]) <= _NEAR * largest).all():
                continue
        place = np.unravel_index(int((a != b).argmax()), a.shape) if a.shape else ()
        return f"output {number} at {[int(each) for each in place]}: {a[place]} became {b[place]}"
    return ""


@contextmanager
def plans_in(folder: Path) -> Iterator[None]:
    """Keep plans in this folder, for a while."""
    names = "OPLET_CACHE_DIR", "OPLET_PLANS"
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(OPLET_CACHE_DIR=str(folder), OPLET_PLANS="")
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        forget_plans()


def in_states(made: Made, folder: Path) -> dict[str, list[Outcome]]:
    """The outcomes in every state that one process can be in.

    Args:
        made: the model.
        folder: where plans are stored, none of this model yet.
    """
    answers = {}
    with plans_in(folder):
        for state in STATES:
            if state != "remembered":
                gc.collect(0)
                forget_plans()
            answers[state] = in_state(made, state)
    return answers


def differences(seed: int, made: Made, answers: dict[str, list[Outcome]]) -> list[Difference]:
    """Where a model answers otherwise than with numpy's kernels, or than in the first state of compiled ones."""
    found: list[Difference] = []
    for state, told_all in answers.items():
        base = "numpy" if state in ("first", "two threads") else "first"
        for number, (one, other) in enumerate(zip(answers[base], told_all, strict=True)):
            what = made.steps[number].what
            exact = None if base == "first" else [*made.exact] if what == "invoke" else [False] * 9
            escaped = other if isinstance(other, str) and other.startswith(ESCAPED) else ""
            if told := escaped or (state != "numpy" and differ(one, other, exact)):
                found.append(Difference(seed, state, number, f"{what}: {told}"))
                break
    return found
