"""`oplet run`: run a model once and show the outputs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oplet.cli.settings import (
    Debug,
    Delegates,
    Inputs,
    Json,
    ModelFile,
    NumThreads,
    PluginSwitches,
    Quiet,
    Raw,
    Signature,
    settings_of,
)

if TYPE_CHECKING:
    from oplet.cli.console import Printer
    from oplet.tools.running.outputs import Score
    from oplet.tools.running.run import RunResult

__all__ = ["run"]

_DEFAULT_TOP = 5


def run(
    context: typer.Context,
    model: ModelFile,
    inputs: Inputs = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write the outputs, as real values: .npz, .npy or .json.", show_default=False
        ),
    ] = None,
    top: Annotated[int | None, typer.Option(min=1, metavar="N", help="Show the N highest scores.", show_default=False)] = None,
    labels: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Names of the scores, one a line.", show_default=False)
    ] = None,
    scale: Annotated[
        float | None,
        typer.Option(
            help="Pixels become pixel * SCALE + OFFSET. Default: for float inputs what the model's metadata say, else 0..1; "
            "for 8-bit ones the whole range.",
            show_default=False,
        ),
    ] = None,
    offset: Annotated[float | None, typer.Option(help="See --scale.", show_default=False)] = None,
    raw: Raw = False,
    signature: Signature = None,
    delegate: Delegates = None,
    num_threads: NumThreads = 1,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the random inputs.")] = 0,
    mmap: Annotated[
        bool,
        typer.Option("--mmap/--no-mmap", help="Map the model's file, or read it into memory, safe from changes to the file."),
    ] = True,
    json: Json = False,
    quiet: Quiet = False,
    p: PluginSwitches = None,
    debug: Debug = False,
) -> None:
    """Run a model once, on files or on random values.

    Values are real numbers on the way in and out, in files, tables and JSON: what a quantized tensor's integers stand for,
    (integer - zero point) * scale. Inputs are rounded as the op QUANTIZE does it; values beyond the tensor's range are clamped,
    with a warning. With --raw they are the integers themselves. Arrays of integers for a quantized input, which may mean either,
    need --raw. What was done to a picture is told on standard error.
    """
    settings = settings_of(context, p, debug)
    from oplet.cli.commands.tune import delegates_of
    from oplet.cli.console import Printer, print_json
    from oplet.cli.notices import NoticePrinter
    from oplet.model.files.atomic_write import check_target
    from oplet.tools.running.formatting import as_json, highest_scores
    from oplet.tools.running.outputs import check_suffix, read_labels, save_outputs
    from oplet.tools.running.run import run_model

    if output is not None:
        check_suffix(output)
        check_target(output)
    names = read_labels(labels) if labels is not None else []
    notify = NoticePrinter(quiet)
    plugins = settings.plugins()
    result = run_model(
        model,
        inputs or [],
        signature=signature,
        scale=scale,
        offset=offset,
        seed=seed,
        num_threads=num_threads,
        plugins=plugins,
        delegates=delegates_of(model, delegate or (), plugins, num_threads),
        use_mmap=mmap,
        raw=raw,
        notify=notify,
    )
    if output is not None:
        save_outputs({value.name: value.displayed for value in result.outputs}, output)
    wanted = top is not None or labels is not None
    highest = highest_scores(result, top or _DEFAULT_TOP, names, str(labels), notify.warn) if wanted else None
    if json:
        print_json(as_json(result, str(output or ""), highest))
        return
    printer = Printer()
    _print_values(printer, result, seed)
    if highest is not None:
        _print_top(printer, highest, bool(names))
    if output is not None:
        printer.line()
        printer.line(f"written to {output}", "dim")


def _print_values(printer: Printer, result: RunResult, seed: int) -> None:
    from oplet.tools.running.formatting import describe_value, preview

    served = ", ".join(f"{count} by {who}" for who, count in result.providers.items()) or "none"
    printer.line(f"nodes: {served}", "dim")
    if result.choice:
        printer.line(result.choice, "dim")
    sources = [f"random, seed {seed}" if value.source == "random" else value.source for value in result.inputs]
    columns = ["name", "type", "shape", "from", "values"]
    printer.table("inputs", columns, [(*describe_value(v), source, preview(v)) for v, source in zip(result.inputs, sources)])
    printer.table("outputs", ["name", "type", "shape", "values"], [(*describe_value(v), preview(v)) for v in result.outputs])


def _print_top(printer: Printer, top: dict[str, list[Score]], labelled: bool) -> None:
    first = 0 if labelled else 1
    for name, scores in top.items():
        cells = [(score.label, f"{score.value:.6g}", score.index)[first:] for score in scores]
        printer.table(f"{name}: the highest", ["label", "score#", "index#"][first:], cells)
