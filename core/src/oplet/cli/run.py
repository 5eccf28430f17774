"""`oplet run`: run a model once and show what comes out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oplet.cli.settings import Debug, Delegates, Inputs, ModelFile, NumThreads, PluginSwitches, Signature, settings_of

if TYPE_CHECKING:
    from oplet.cli.console import Printer
    from oplet.tools.run import RunResult

__all__ = ["run"]

_DEFAULT_TOP = 5


def run(
    context: typer.Context,
    model: ModelFile,
    inputs: Inputs = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the outputs: .npz, .npy or .json.", show_default=False),
    ] = None,
    top: Annotated[int | None, typer.Option(min=1, metavar="N", help="Show the N highest scores.", show_default=False)] = None,
    labels: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Names of the scores, one a line.", show_default=False)
    ] = None,
    scale: Annotated[
        float | None,
        typer.Option(
            help="Pixels become pixel * SCALE + OFFSET. Default: 0..1 for float inputs, the whole range for 8-bit ones.",
            show_default=False,
        ),
    ] = None,
    offset: Annotated[float | None, typer.Option(help="See --scale.", show_default=False)] = None,
    signature: Signature = None,
    delegate: Delegates = None,
    num_threads: NumThreads = 1,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Of the random inputs.")] = 0,
    mmap: Annotated[
        bool, typer.Option("--mmap/--no-mmap", help="Map the model's file, or read it into memory, where nobody can cut it.")
    ] = True,
    p: PluginSwitches = None,
    debug: Debug = False,
) -> None:
    """Run a model once, on files or on random values."""
    settings = settings_of(context, p, debug)
    from oplet.cli.console import Printer
    from oplet.cli.tune import delegates_of
    from oplet.model.whole_file import check_target
    from oplet.tools.outputs import check_suffix, read_labels, save_outputs
    from oplet.tools.run import run_model

    if output is not None:
        check_suffix(output)
        check_target(output)
    names = read_labels(labels) if labels is not None else []
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
    )
    if output is not None:
        save_outputs({value.name: value.array for value in result.outputs}, output)
    printer = Printer()
    _print_values(printer, result, seed)
    if top is not None or labels is not None:
        _print_top(printer, result, top or _DEFAULT_TOP, names, str(labels))
    if output is not None:
        printer.line()
        printer.line(f"written to {output}", "dim")


def _print_values(printer: Printer, result: RunResult, seed: int) -> None:
    from oplet.tools.showing import described, head

    served = ", ".join(f"{count} by {who}" for who, count in result.providers.items()) or "none"
    printer.line(f"nodes: {served}", "dim")
    if result.choice:
        printer.line(result.choice, "dim")
    sources = [f"random, seed {seed}" if value.source == "random" else value.source for value in result.inputs]
    columns = ["name", "type", "shape", "from", "values"]
    printer.table("inputs", columns, [(*described(v), source, head(v)) for v, source in zip(result.inputs, sources)])
    printer.table("outputs", ["name", "type", "shape", "values"], [(*described(v), head(v)) for v in result.outputs])


def _print_top(printer: Printer, result: RunResult, count: int, labels: list[str], file: str) -> None:
    from oplet.errors import TensorError
    from oplet.tools.outputs import top_scores

    rows = [value for value in result.outputs if 1 < value.array.size == max(value.array.shape, default=1)]
    if not rows:
        raise TensorError("No output is one row of scores, so there is nothing that --top and --labels could name.")
    for value in rows:
        scores = top_scores(value.array, value.details, count, labels)
        if labels and len(labels) != value.array.size:
            typer.echo(f"oplet: warning: '{file}' has {len(labels)} labels for {value.array.size} scores.", err=True)
        first = 0 if labels else 1
        cells = [(score.label, f"{score.value:.6g}", score.index)[first:] for score in scores]
        printer.table(f"{value.name}: the highest", ["label", "score#", "index#"][first:], cells)
