"""`oplet warm`: compiles ahead of time everything that a model's first run on a machine would wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from oplet_tools.cli.settings import Debug, Delegates, Json, ModelFile, OpLibraries, PluginSwitches, Wide, settings_of

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["warm"]


def warm(
    context: typer.Context,
    model: ModelFile,
    num_threads: Annotated[int, typer.Option(min=1, metavar="N", help="Threads that kernels may use.")] = 1,
    delegate: Delegates = None,
    custom_op_library: OpLibraries = None,
    json: Json = False,
    wide: Wide = False,
    p: PluginSwitches = None,
    debug: Debug = False,
) -> None:
    """Compile the kernels of a model ahead, so that its first run on this machine is as fast as any."""
    settings = settings_of(context, p, debug)
    from oplet_tools.benchmarking.warming import warm_up
    from oplet_tools.cli.commands.tune import delegates_of
    from oplet_tools.cli.console import Printer, print_json
    from oplet_tools.cli.progress import progress_bars

    plugins = settings.plugins(custom_op_library)
    with progress_bars() as progress:
        done = warm_up(
            model,
            num_threads=num_threads,
            plugins=plugins,
            delegates=delegates_of(model, delegate or (), plugins, num_threads),
            progress=progress or _say_that_it_begins(),
        )
    if json:
        print_json({"model": done.model, "waited": done.waited, "seconds": done.seconds})
        return
    printer = Printer(wide)
    if done.waited:
        printer.line(f"Compiled the kernels of {done.waited} nodes in {done.seconds:.1f} seconds.", "bold")
    else:
        printer.line("Nothing was to be compiled: each node has its best kernel already.", "bold")


def _say_that_it_begins() -> Callable[[str, float], None]:
    """Return a callback that prints each phase once when it begins, in place of a progress bar: a log should not be silent for
    minutes.
    """
    from oplet_tools.cli.notices import say

    said: set[str] = set()

    def tell(what: str, part: float) -> None:
        if what not in said and part < 1.0:
            said.add(what)
            say(f"{what} ...")

    return tell
