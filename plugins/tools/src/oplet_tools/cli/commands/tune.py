"""`oplet tune`: the installed engine that runs a model fastest, and the errors of all of them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oplet_tools.cli.settings import (
    Debug,
    Inputs,
    Json,
    ModelFile,
    NumThreads,
    PluginSwitches,
    Quiet,
    Raw,
    Wide,
    option,
    settings_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oplet import Delegate, PluginManager
    from oplet_tools.cli.console import Printer
    from oplet_tools.tuning.choice import Choice
    from oplet_tools.tuning.trials import Trial

__all__ = ["delegates_of", "tune"]


def tune(
    context: typer.Context,
    model: ModelFile,
    inputs: Inputs = None,
    num_threads: NumThreads = 1,
    max_error: Annotated[
        float | None,
        option(
            min=0,
            metavar="E",
            help="Leave out what is further from the built-in kernels, as a part of an output's largest value. By default it goes with the "
            "output's type and the kind of model, as in `oplet compare`.",
        ),
    ] = None,
    max_secs: Annotated[
        float, typer.Option(min=0, metavar="S", help="Begin no further measurement after this many seconds.")
    ] = 60.0,
    raw: Raw = False,
    quiet: Quiet = False,
    json: Json = False,
    wide: Wide = False,
    p: PluginSwitches = None,
    debug: Debug = False,
) -> None:
    """Measure a model in every way that is installed, and remember the fastest for `--delegate auto`."""
    settings = settings_of(context, p, debug)
    from oplet_tools.benchmarking.blas_threads import limit_blas_threads

    limit_blas_threads(num_threads)  # before anything imports numpy
    from oplet_tools.benchmarking.tune import tune_model
    from oplet_tools.cli.console import Printer, print_json
    from oplet_tools.cli.notices import NoticePrinter
    from oplet_tools.cli.progress import progress_bars
    from oplet_tools.tuning.trials import Bounds

    with progress_bars() as progress:
        choice = tune_model(
            model,
            inputs or (),
            plugins=settings.plugins(),
            num_threads=num_threads,
            bounds=Bounds(max_error, max_secs),
            progress=progress,
            raw=raw,
            notify=NoticePrinter(quiet),
        )
    if json:
        print_json(asdict(choice))
    else:
        _print(Printer(wide), choice, model, num_threads)


def _print(printer: Printer, choice: Choice, model: Path, num_threads: int) -> None:
    printer.line(str(model), "bold")
    printer.line(f"threads: {num_threads}", "dim")
    plain = choice.trials[0].seconds
    rows = [_row(trial, plain, trial.candidate == choice.candidate) for trial in _by_time(choice.trials)]
    printer.table("ways to run it", ["", "way", "ms#", "times as fast#", "error#?", "ready s#??", "delegated#??", "~"], rows)
    printer.line()
    printer.line(str(choice))
    if choice.in_process:
        printer.line(f"measured in this process, since {choice.in_process}", "dim")
    printer.line(f"remembered in {choice.path}" if choice.path else "not remembered", "dim")


def _by_time(trials: Sequence[Trial]) -> list[Trial]:
    """Sort the trials: those that may be chosen, the fastest first, then the others."""
    return sorted(trials, key=lambda trial: (bool(trial.why), trial.seconds is None, trial.seconds or 0.0))


def _row(trial: Trial, plain: float | None, chosen: bool) -> tuple[str, ...]:
    return (
        ">" if chosen else "",
        str(trial.candidate),
        "-" if trial.seconds is None else f"{trial.seconds * 1e3:.3f}",
        "-" if trial.seconds is None or plain is None else f"{plain / trial.seconds:.2f}",
        "-" if trial.error is None else f"{trial.error:.2g}",
        "-" if trial.ready is None else f"{trial.ready:.2f}",
        f"{sum(trial.claimed)} of {trial.nodes}" if trial.candidate.delegates and trial.nodes else "",
        trial.why,
    )


def delegates_of(model: Path, texts: Sequence[str], plugins: PluginManager, num_threads: int) -> Sequence[Delegate] | str:
    """Make the delegates that a command line names; for "auto", engines without a stored time are measured, with a progress
    bar.
    """
    from oplet_tools.running.delegates import delegates_or_auto

    delegates = delegates_or_auto(texts, plugins)
    if isinstance(delegates, str):
        from oplet_tools.benchmarking.tune import tune_model
        from oplet_tools.cli.progress import progress_bars
        from oplet_tools.tuning.choice import auto_bounds

        with progress_bars() as progress:
            tune_model(
                model, plugins=plugins, num_threads=num_threads, again=False, progress=progress, bounds=auto_bounds(delegates)
            )
    return delegates
