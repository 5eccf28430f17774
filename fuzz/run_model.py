"""Run one model under limits and classify the outcome.

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

#: Most seconds of processor time for one call with a deadline of two seconds.
_LONGEST = 4.5


class Outcome(NamedTuple):
    """The outcome of running a model.

    Attributes:
        kind: "ok"; "refused": an error of oplet.errors, as intended; "accident": an error of oplet.errors that wraps an unexpected
            exception of numpy or Python, which a check should have prevented; "escaped": an exception outside oplet.errors; "warned": a
            warning that users should not see; "slow": a call that took twice its time limit. `differential` and the worker
            add "wrong", "differs" and "memory".
        stage: the last stage, see `exercise`.
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
    """Load a model, allocate, set random inputs, invoke and read the outputs; some models are used in other ways too.

    Args:
        choices: decides on the inputs' values and shapes, and on how the model is used.
        resize: whether inputs may be resized, and the model be used in other ways.
        engine: the engine; numpy's kernels by default.
        limits: the limits; with the default ones the run is asked to stop after two seconds.
        folder: a folder with external files; models that refer to these are written there and opened by path.
        run: the record of the run.
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


#: Warnings since the last model began: class, place and message.
_WARNED: list[tuple[str, str, str]] = []


def watch_warnings() -> None:
    """Record warnings that users should not see (numpy's about arithmetic) and exceptions that Python cannot raise (unraisable ones)."""

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
    """The outcome of an error of oplet.errors: "refused", or "accident" if an unexpected exception caused it."""
    name = type(error).__name__
    # A PluginError means that one of our kernels violated the plugin contract.
    if type(error).__module__ != OpletError.__module__ or name == "PluginError":
        return Outcome("escaped", stage, name, _place(error), _line(error))
    cause = error.__cause__
    while isinstance(cause, OpletError):
        cause = cause.__cause__
    if cause is not None and str(error).startswith(f"{type(cause).__name__}: "):
        return Outcome("accident", stage, type(cause).__name__, _place(cause), _line(error))
    return Outcome("refused", stage, name, message=_line(error))


def _place(error: BaseException) -> str:
    """Module and line of the innermost frame in our code."""
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
