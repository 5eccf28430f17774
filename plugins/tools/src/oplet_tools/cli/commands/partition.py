"""`oplet partition`: the nodes of a model that delegates would claim, and why they leave the others."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oplet.texts import counted, plain
from oplet_tools.cli.notices import say
from oplet_tools.cli.settings import Debug, Json, ModelFile, NeededDelegates, PluginSwitches, Wide, option, settings_of

if TYPE_CHECKING:
    from oplet_tools.cli.console import Printer
    from oplet_tools.partitioning.partition import NodeAssignment, Partitioning, SubgraphPartitioning, Traffic

__all__ = ["partition"]

#: More nodes than a drawing shows well.
_MOST_DRAWN = 150


def partition(
    context: typer.Context,
    model: ModelFile,
    delegate: NeededDelegates,
    json: Json = False,
    svg: Annotated[Path | None, option(metavar="FILE", help="Draw the graph before and after.")] = None,
    wide: Wide = False,
    p: PluginSwitches = None,
    debug: Debug = False,
) -> None:
    """Show which nodes delegates would take, without running the model; exits with 1 if a delegate fails."""
    settings = settings_of(context, p, debug)
    from oplet_tools.cli.console import Printer, print_json
    from oplet_tools.cli.progress import progress_bars
    from oplet_tools.comparing.interpreters import open_pair
    from oplet_tools.partitioning.partition import partition_model

    if svg is not None:
        from oplet.toolkit import check_target
        from oplet_tools.partitioning.layout import ensure_layout

        ensure_layout()
        check_target(svg)
    plugins = settings.plugins()
    with progress_bars() as progress:
        pair, chosen = open_pair(model, delegate, plugins, progress=progress)
    result = partition_model(model, pair.make_delegates(), plugins)
    if svg is not None:
        from oplet import write_atomically
        from oplet_tools.partitioning.drawing import draw_partitioning

        write_atomically(svg, draw_partitioning(result))
    if json:
        print_json({**_as_json(result), "choice": chosen})
    else:
        printer = Printer(wide)
        if chosen:
            printer.line(chosen)
        _print(printer, result)
        if svg is not None:
            printer.line()
            printer.line(f"written to {svg}", "dim")
    if svg is not None and result.nodes > _MOST_DRAWN:
        say(
            f"{result.nodes} nodes make a drawing that nobody overlooks; `oplet explore` with the same options shows them to fold and search."
        )
    if result.error:
        say(result.error)
        raise typer.Exit(1)


def _print(printer: Printer, result: Partitioning) -> None:
    printer.line(result.file, "bold")
    if result.error:
        printer.line("A delegate does not suit the model, or failed; this is the graph as it stays.", "bold")
    where = "" if len(result.subgraphs) == 1 else f" of {counted(len(result.subgraphs), 'subgraph')}"
    printer.line(f"{_delegates(result)} {counted(result.claimed, 'node')} of {result.nodes}{where}, {_partitions(result)}.")
    for subgraph in result.subgraphs:
        _print_subgraph(printer, result, subgraph)
    if result.partitions:
        _print_borders(printer, result)


def _delegates(result: Partitioning) -> str:
    if not result.delegates:
        return "No delegate was chosen, which takes"
    return " and ".join(result.delegates) + (" takes" if len(result.delegates) == 1 else " take")


def _partitions(result: Partitioning) -> str:
    count = len(result.partitions)
    return f"in {counted(count, 'partition')}" if count else "so everything stays"


def _print_subgraph(printer: Printer, result: Partitioning, subgraph: SubgraphPartitioning) -> None:
    title = f"subgraph {subgraph.index}" + (f" '{subgraph.name}'" if subgraph.name else "")
    if subgraph.skipped:
        printer.line()
        printer.line(f"{title}: the delegates are not asked, {subgraph.skipped}.")
    if not result.error:
        for delegate, error in subgraph.errors.items():
            printer.line()
            printer.line(f"{title}: {delegate} is not in force: {error}")
    if subgraph.nodes:
        owners = {partition.index: partition.delegate for partition in subgraph.partitions}
        rows = [
            (
                node.index,
                node.op,
                node.version,
                "stays" if node.partition is None else f"{owners[node.partition]}, partition {node.partition}",
                _why(node),
            )
            for node in subgraph.nodes
        ]
        printer.table(f"{title}: nodes", ["node#", "op", "version#?", "goes to", "why it stays~"], rows)


def _why(node: NodeAssignment) -> str:
    return "; ".join(f"{delegate}: {reason or 'not claimed'}" for delegate, reason in node.why.items())


def _print_borders(printer: Printer, result: Partitioning) -> None:
    rows: list[tuple[object, ...]] = []
    for subgraph in result.subgraphs:
        ops = {node.index: node.op for node in subgraph.nodes}
        for cut in subgraph.partitions:
            counts = Counter(ops[node] for node in cut.nodes)
            kinds = ", ".join(op if count == 1 else f"{count} {op}" for op, count in counts.items())
            sizes = (_bytes(cut.inputs), _bytes(cut.outputs), _bytes(cut.constants))
            rows.append((cut.index, cut.delegate, subgraph.index, len(cut.nodes), kinds, *sizes))
    if len(rows) > 1:
        inputs, outputs, constants = result.totals
        rows.append(("", "together", "", result.claimed, "", _bytes(inputs), _bytes(outputs), _bytes(constants)))
    columns = ["partition#", "delegate", "subgraph#??", "nodes#", "ops~", "bytes in#", "bytes out#", "bytes of constants#?"]
    printer.table("what crosses the borders", columns, rows)
    for cut in result.partitions:
        if cut.remark:
            printer.line(f"partition {cut.index}, {cut.delegate}: {plain(cut.remark)}")


def _bytes(traffic: Traffic) -> str:
    unknown = f"{counted(traffic.unknown, 'tensor')} of unknown size" if traffic.unknown else ""
    return " + ".join(filter(None, [f"{traffic.bytes:,}" if traffic.bytes or not unknown else "", unknown]))


def _as_json(result: Partitioning) -> dict[str, Any]:
    described = asdict(result)
    for subgraph in described["subgraphs"]:
        subgraph["tensors"] = list(subgraph["tensors"].values())
    inputs, outputs, constants = result.totals
    described["totals"] = {
        "nodes": result.nodes,
        "claimed": result.claimed,
        "partitions": len(result.partitions),
        "bytes_in": inputs.bytes,
        "bytes_out": outputs.bytes,
        "bytes_of_constants": constants.bytes,
        "tensors_of_unknown_size": inputs.unknown + outputs.unknown + constants.unknown,
    }
    return described
