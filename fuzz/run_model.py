"""Run one model under limits and say what came of it.

python -m fuzz.run_model MODEL [NUMBER [ENGINE [LIMITS]]]
"""

from __future__ import annotations

import os
import sys
import time
import traceback
import warnings
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from fuzz.choices import Choices, SeededChoices
from fuzz.engines import DEFAULT, DOCUMENTED, LIMITS, Engine, opened
from fuzz.exercise import Run
from fuzz.watchdog import Watchdog
from oplet import Limits
from oplet.errors import OpletError

__all__ = ["Outcome", "run_model", "watch_warnings"]

#: Seconds of processor time that one call may take where a deadline of two seconds holds.
_LONGEST = 4.5


class Outcome(NamedTuple):
    """What came of a model.

    Attributes:
        kind: "ok"; "refused", with an error of oplet.errors as it should be; "accident", the same but because numpy or
            Python stumbled over what a check should have found; "escaped", an exception outside oplet.errors; "warned", a
            warning that nobody should see; "slow", a call that took twice the time it was given; and what `comparing` and the
            worker find: "wrong", "differs", "memory".
        stage: what was done last, see `uses`.
        error: the class of the error.
        place: where an accident or an escaped exception was raised: module and line.
        message: the first line of the error.
    """

    kind: str
    stage: str
    error: str = ""
    place: str = ""
    message: str = ""


def run_model(
    data: bytes,
    choices: Choices,
    *,
    resize: bool = True,
    engine: Engine | None = None,
    limits: Limits = DOCUMENTED,
    folder: str = "",
    run: Run | None = None,
) -> Outcome:
    """Load, allocate, feed at random, invoke and read what there is to read; some models are used in other ways too.

    Args:
        choices: decide about the inputs' values, about other shapes for them, and about what is done.
        resize: whether the inputs may get other shapes at all, and other things than the plain ones be done.
        engine: what runs it; numpy's kernels unless given.
        limits: the limits; with the default ones the run is asked to stop after two seconds.
        folder: with files that models refer to; those that do are written there, and opened by their path.
        run: takes notes of what is done.
    """
    run = run or Run()
    watchdog = _watchdog() if limits is DEFAULT else None
    _WARNED.clear()
    try:
        run.begin(data, choices, engine or opened("numpy"), limits, folder, watchdog)
        run.use(choices, plain=not resize)
    except OpletError as error:
        outcome = _told(error, run.stage)
    except Exception as error:
        outcome = Outcome("escaped", run.stage, type(error).__name__, _place(error), _line(error))
    else:
        outcome = Outcome("ok", run.stage)
    finally:
        if watchdog is not None:
            watchdog.end()
        run.stop()
    try:
        run.close()
    except Exception as error:
        outcome = Outcome("escaped", "close", type(error).__name__, _place(error), _line(error))
    if _WARNED and outcome.kind in ("ok", "refused"):
        kind, place, message = _WARNED[0]
        return Outcome("warned", run.stage, kind, place, message)
    if limits is DOCUMENTED and run.longest > _LONGEST and outcome.kind in ("ok", "refused"):
        return Outcome("slow", run.slowest, outcome.error, "", f"{run.longest:.1f} s; {outcome.message}")
    return outcome


@cache
def _watchdog() -> Watchdog:
    return Watchdog()


#: Warnings since the last model began: their class, place and words.
_WARNED: list[tuple[str, str, str]] = []


def watch_warnings() -> None:
    """Take note of warnings that no user should see: numpy's about arithmetic, and of what fails where nobody can catch it."""

    def show(message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any) -> None:
        _WARNED.append((category.__name__, f"{Path(filename).parent.name}/{Path(filename).name}:{lineno}", str(message)[:300]))

    def unraisable(found: Any) -> None:
        kind = type(found.exc_value).__name__
        _WARNED.append((kind, _place(found.exc_value) if found.exc_value else "?", f"ignored: {found.exc_value}"[:300]))

    warnings.resetwarnings()
    warnings.simplefilter("ignore")
    warnings.simplefilter("always", RuntimeWarning)
    warnings.simplefilter("always", ResourceWarning)
    warnings.showwarning = show  # type: ignore[assignment]
    sys.unraisablehook = unraisable


def _told(error: OpletError, stage: str) -> Outcome:
    """An error that is oplet's own; an accident if something else lies behind it that nobody meant to raise."""
    name = type(error).__name__
    # A PluginError says that one of our own kernels broke the rules.
    if type(error).__module__ != OpletError.__module__ or name == "PluginError":
        return Outcome("escaped", stage, name, _place(error), _line(error))
    cause = error.__cause__
    while isinstance(cause, OpletError):
        cause = cause.__cause__
    if cause is not None and str(error).startswith(f"{type(cause).__name__}: "):
        return Outcome("accident", stage, type(cause).__name__, _place(cause), _line(error))
    return Outcome("refused", stage, name, message=_line(error))


def _place(error: BaseException) -> str:
    """The innermost line of ours."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "oplet" in frame.filename and "site-packages" not in frame.filename]
    if not ours:
        return "?"
    path = Path(ours[-1].filename)
    return f"{path.parent.name}/{path.name}:{ours[-1].lineno}"


def _line(error: BaseException) -> str:
    return str(error).split("\n")[0][:300]


def _main() -> None:
    path, number, engine, limits = Path(sys.argv[1]), *(sys.argv[2:] + ["0", "numpy", "documented"][len(sys.argv) - 2 :])
    watch_warnings()
    started = time.monotonic()
    choices = SeededChoices(f"inputs of {path.stem} {number}")
    print(run_model(path.read_bytes(), choices, engine=opened(engine), limits=LIMITS[limits], folder=os.path.dirname(path)))
    print(f"{time.monotonic() - started:.2f} s")


if __name__ == "__main__":
    _main()
