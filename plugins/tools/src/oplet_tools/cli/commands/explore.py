"""`oplet explore`: a model's graph as a page for a browser, or as a file for Model Explorer."""

from __future__ import annotations

import os
from dataclasses import asdict
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from oplet_tools.cli.notices import say
from oplet_tools.cli.settings import Debug, Delegates, Json, ModelFile, NumThreads, PluginSwitches, option, settings_of

__all__ = ["explore"]


class Form(str, Enum):
    """The format of the file that `oplet explore` writes."""

    HTML = "html"
    MODEL_EXPLORER = "model-explorer"


def explore(
    context: typer.Context,
    model: ModelFile,
    delegate: Delegates = None,
    times: Annotated[bool, typer.Option("--times", help="Run the model on random values and measure its nodes.")] = False,
    num_threads: NumThreads = 1,
    output: Annotated[
        Path | None,
        option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where to write. Default: the model's name with .html, unless another file has it.",
        ),
    ] = None,
    format: Annotated[
        Form, typer.Option("--format", help="A page for a browser, or a graph for Google's Model Explorer.")
    ] = Form.HTML,
    open: Annotated[bool, typer.Option("--open", help="Show the page in the browser.")] = False,
    json: Json = False,
    p: PluginSwitches = None,
    debug: Debug = False,
) -> None:
    """Write the graph of a model as a page to look at: pan, zoom, search, fold; no network, one file."""
    settings = settings_of(context, p, debug)
    from oplet import write_atomically
    from oplet.toolkit import check_target
    from oplet_tools.cli.console import Printer, print_json
    from oplet_tools.cli.progress import progress_bars
    from oplet_tools.comparing.interpreters import open_pair
    from oplet_tools.describing.exploring.explore import explore_model

    if open and (format is not Form.HTML or json):
        raise typer.BadParameter("shows a page, and here is none to show.", param_hint="--open")
    if json and (output is not None or format is not Form.HTML):
        raise typer.BadParameter("prints the graph's data and writes no file.", param_hint="--json")
    target = output or Path(model.name or "model").with_suffix(".html" if format is Form.HTML else ".json")
    if not json:
        if output is None:
            _check_default(target)
        check_target(target)
    plugins = settings.plugins()
    with progress_bars() as progress:
        pair, chosen = open_pair(model, delegate or (), plugins, num_threads, progress=progress)
        measured = None
        if times:
            from oplet_tools.describing.exploring.times import measure_nodes

            measured = measure_nodes(model, pair.make_delegates(), plugins, num_threads=num_threads, progress=progress)
        result = explore_model(model, pair.make_delegates, plugins, times=measured, choice=chosen)
    if json:
        print_json(asdict(result))
    else:
        if output is None:
            _check_default(target)  # again, as it took a while
        if format is Form.HTML:
            from oplet_tools.describing.exploring.page import explore_page

            write_atomically(target, explore_page(result).encode("utf-8"))
        else:
            from oplet_tools.describing.exploring.model_explorer import model_explorer_json

            write_atomically(target, model_explorer_json(result))
        Printer().line(f"written to {target}", "dim")
        if open and not _open(target):
            say(f"no browser was found to show the page in; open '{target}' with one.")
            raise typer.Exit(1)
    if result.error:
        say(result.error)
        raise typer.Exit(1)


def _open(target: Path) -> bool:
    """Show a page in the user's browser; return whether there is one."""
    import webbrowser

    return webbrowser.open(target.absolute().as_uri())


def _check_default(target: Path) -> None:
    """Check that the file that the user did not name replaces none but an earlier page: whoever made the model chose its name.

    Raises:
        BadParameter: another file is there.
    """
    if os.path.lexists(target):
        from oplet_tools.describing.exploring.page import is_explore_page

        if not is_explore_page(target):
            raise typer.BadParameter(
                f"'{target}' is there already and is no page of `oplet explore`; say where to write.", param_hint="--output"
            )
