"""`oplet compare`: a model with and without delegates, and how far apart the answers are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oplet.cli.settings import (
    Debug,
    Format,
    Inputs,
    ModelFile,
    NeededDelegates,
    NumThreads,
    PluginSwitches,
    Quiet,
    Raw,
    Signature,
    settings_of,
)

if TYPE_CHECKING:
    from oplet.cli.console import Printer
    from oplet.tools.comparing.compare import Comparison, Layer

__all__ = ["compare"]

_LONGEST_NAME = 50
_COLUMNS = ["", "name", "type", "shape", "max error#", "mean error#", "max relative#", "differing#", "NaN, inf"]


def compare(
    context: typer.Context,
    model: ModelFile,
    delegate: NeededDelegates,
    inputs: Inputs = None,
    runs: Annotated[int, typer.Option(min=1, metavar="N", help="Run so often, each time with other random inputs.")] = 3,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Of the first run's random inputs.")] = 0,
    rtol: Annotated[float, typer.Option(min=0, metavar="R", help="Errors up to ATOL + RTOL * |value| pass.")] = 1e-4,
    atol: Annotated[float, typer.Option(min=0, metavar="A", help="See --rtol; of integers in steps.")] = 1e-5,
    layers: Annotated[
        bool,
        typer.Option("--layers", help="Compare, and judge, the tensors at the borders of partitions too.", show_default=False),
    ] = False,
    format: Annotated[Format, typer.Option(help="A table for people or JSON for programs.")] = Format.TABLE,
    scale: Annotated[
        float | None,
        typer.Option(help="Pixels become pixel * SCALE + OFFSET, see `oplet run`.", show_default=False),
    ] = None,
    offset: Annotated[float | None, typer.Option(help="See --scale.", show_default=False)] = None,
    raw: Raw = False,
    quiet: Quiet = False,
    signature: Signature = None,
    num_threads: NumThreads = 1,
    p: PluginSwitches = None,
    debug: Debug = False,
) -> None:
    """Run a model with and without a delegate and compare; exits with 1 if an error is larger than the tolerance."""
    settings = settings_of(context, p, debug)
    from oplet.cli.console import Printer, print_json
    from oplet.cli.notices import Teller
    from oplet.tools.comparing.compare import compare_delegate
    from oplet.tools.delegates import delegate_named

    plugins = settings.plugins()
    result = compare_delegate(
        model,
        [delegate_named(text, plugins) for text in delegate],
        inputs or [],
        runs=runs,
        seed=seed,
        rtol=rtol,
        atol=atol,
        layers=layers,
        signature=signature,
        scale=scale,
        offset=offset,
        raw=raw,
        tell=Teller(quiet),
        num_threads=num_threads,
        plugins=plugins,
    )
    if format is Format.JSON:
        print_json(_as_json(result, layers))
    else:
        _print(Printer(), result, layers, seed)
    if not result.passed:
        raise typer.Exit(1)


def _print(printer: Printer, result: Comparison, layers: bool, seed: int) -> None:
    claimed = sum(len(nodes) for _, nodes in result.partitions)
    if result.trivial:
        printer.line(
            f"The delegate claims none of the model's nodes ({result.nodes}): the model was compared with itself.", "bold"
        )
    else:
        printer.line(
            f"The delegate runs {claimed} of {_count(result.nodes, 'node')} in {_count(len(result.partitions), 'partition')}."
        )
    seeds = f"{seed}" if result.runs == 1 else f"{seed} to {seed + result.runs - 1}"
    sources = [f"{name} from {source}" if source != "random" else f"{name} random" for name, source in result.sources.items()]
    of_seed = f", seed {seeds}" if "random" in result.sources.values() else ""
    printer.line(f"{_count(result.runs, 'run')}; {', '.join(sources) or 'no inputs'}{of_seed}", "dim")
    printer.table("outputs", _COLUMNS, [_row(layer) for layer in result.outputs])
    if layers and not result.trivial:
        rows = [(*_row(layer), _border(layer)) for layer in result.layers]
        printer.table("borders of partitions", [*_COLUMNS, "border"], rows)
        named = [f"{number}: {_nodes(subgraph, nodes)}" for number, (subgraph, nodes) in enumerate(result.partitions)]
        printer.line()
        printer.line(f"partitions: {'; '.join(named)}", "dim")
    failed = [layer for layer in (*result.outputs, *result.layers) if not layer.difference.passed]
    printer.line()
    if failed:
        names = ", ".join(dict.fromkeys(map(_name, failed)))
        printer.line(f"FAIL at rtol {result.rtol:g}, atol {result.atol:g}: {names}", "bold red")
        for layer in failed:
            if layer.difference.why:
                printer.line(f"{_name(layer)}: {layer.difference.why}")
    else:
        printer.line(f"pass at rtol {result.rtol:g}, atol {result.atol:g}", "bold green")


def _row(layer: Layer) -> tuple[str, ...]:
    d = layer.difference
    described = ("ok" if d.passed else "FAIL", _name(layer), layer.type, str(list(layer.shape)))
    if d.why:
        return (*described, "-", "-", "-", "-", "")
    nonfinite = f"{d.nonfinite}, {d.nonfinite_differing} of them differ" if d.nonfinite else ""
    counted = f"{d.differing} of {d.values}"
    if layer.type in ("string", "bool"):
        return (*described, "", "", "", counted, nonfinite)
    largest = f"{d.max_abs:.0f} steps" if "int" in layer.type else f"{d.max_abs:.3g}"
    return (*described, largest, f"{d.mean_abs:.3g}", f"{d.max_rel:.3g}", counted, nonfinite)


def _name(layer: Layer) -> str:
    name = layer.name or f"tensor {layer.tensor}"
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 3]}..."


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _border(layer: Layer) -> str:
    parts = [f"out of {layer.written_by}"] if layer.written_by >= 0 else []
    return ", ".join(parts + [f"into {number}" for number in layer.read_by])


def _nodes(subgraph: int, nodes: Sequence[int]) -> str:
    listed = ", ".join(map(str, nodes))
    return f"nodes {listed}" + (f" of subgraph {subgraph}" if subgraph else "")


def _as_json(result: Comparison, layers: bool) -> dict[str, Any]:
    described: dict[str, Any] = {
        "passed": result.passed,
        "trivial": result.trivial,
        "rtol": result.rtol,
        "atol": result.atol,
        "runs": result.runs,
        "inputs": result.sources,
        "nodes": result.nodes,
        "partitions": [{"subgraph": subgraph, "nodes": nodes} for subgraph, nodes in result.partitions],
        "outputs": [_layer_as_json(layer, "written_by", "read_by") for layer in result.outputs],
    }
    if layers:
        described["layers"] = [_layer_as_json(layer) for layer in result.layers]
    return described


def _layer_as_json(layer: Layer, *without: str) -> dict[str, Any]:
    flat = asdict(layer)
    flat |= flat.pop("difference")
    return {key: value for key, value in flat.items() if key not in without}
