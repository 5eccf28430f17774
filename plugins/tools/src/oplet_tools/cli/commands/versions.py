"""`oplet versions`: the versions of a model's operators, and the runtime releases that run it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from oplet_tools.cli.settings import Debug, Json, ModelFile, PluginSwitches, Wide, option, settings_of

if TYPE_CHECKING:
    from oplet_tools.cli.console import Printer

__all__ = ["versions"]

_NOT_KNOWN = "not known"


def versions(
    context: typer.Context,
    model: ModelFile,
    against: Annotated[
        str | None,
        option(
            metavar="RELEASE",
            help="Ask whether this release of TensorFlow Lite or LiteRT (2.5.0) would run the model; exit with 1 if not.",
        ),
    ] = None,
    nodes: Annotated[bool, option("--nodes", help="List every node.")] = False,
    json: Json = False,
    wide: Wide = False,
    p: PluginSwitches = None,
    debug: Debug = False,
) -> None:
    """Show which versions of its operators a model has, which it would need, and which runtimes run it."""
    settings = settings_of(context, p, debug)
    from oplet_tools.cli.console import Printer, print_json
    from oplet_tools.describing.versions import ReleaseError, describe_versions, parse_release, problems_with

    plugins = settings.plugins()
    if against is None:
        description = describe_versions(model, plugins)
        if json:
            print_json(description if nodes else {key: value for key, value in description.items() if key != "nodes"})
        else:
            _print_versions(Printer(wide), description, nodes)
        return
    try:
        release = parse_release(against)
    except ReleaseError as error:
        raise typer.BadParameter(str(error), param_hint="--against") from error
    problems = problems_with(model, release, plugins)
    if json:
        print_json({"file": str(model), "against": release, "runs": not problems, "problems": problems})
    else:
        _print_problems(Printer(wide), str(model), release, problems)
    raise typer.Exit(1 if problems else 0)


def _print_versions(printer: Printer, description: dict[str, Any], nodes: bool) -> None:
    printer.line(description["file"], "bold")
    minimum = description["minimum_runtime"] or _NOT_KNOWN
    printer.line(f"minimum runtime: {minimum}")
    printer.line(f"with the lowest versions: {description['minimum_runtime_lowest'] or _NOT_KNOWN}")
    printer.line(f"noted in the file: {description['minimum_runtime_noted'] or 'not said'}")
    raising = ", ".join(f"{entry['op']} version {entry['version']}" for entry in description["raised_by"])
    if raising:
        printer.line(f"raised by: {raising}")
    columns = ["op", "version#", "needed#", "why~?", "first runtime", "of needed??"]
    printer.table("ops", [*columns, "nodes#??"], [(*_cells(op), op["nodes"]) for op in description["ops"]])
    if nodes:
        rows = [(node["subgraph"], node["node"], *_cells(node)) for node in description["nodes"]]
        printer.table("nodes", ["subgraph#??", "node#", *columns], rows)


def _cells(entry: dict[str, Any]) -> tuple[object, ...]:
    name = f"{entry['op']} (custom)" if entry["custom"] else entry["op"]
    releases = (entry[key] or _NOT_KNOWN for key in ("first_runtime", "needed_runtime"))
    return name, entry["version"], entry["needed"], entry["why"], *releases


def _print_problems(printer: Printer, file: str, release: str, problems: list[dict[str, Any]]) -> None:
    if not problems:
        printer.line(f"{release} would run {file}.")
        return
    printer.line(f"{release} would not run {file}:")
    rows = [(p["subgraph"], p["node"], p["op"], p["version"], p["why"]) for p in problems]
    printer.table("", ["subgraph#?", "node#", "op", "version#", "why~"], rows)
    if all(problem["lowest_runs"] for problem in problems):
        printer.line()
        printer.line("It would run the lowest versions that these nodes need: oplet rewrite writes them.")
