"""`oplet warm`: everything that a model's first run on a machine would wait for, ahead."""

from __future__ import annotations

from typing import Annotated

import typer

from oplet.cli.settings import Debug, Delegates, Json, ModelFile, OpLibraries, PluginSwitches, Wide, settings_of

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
    from oplet.cli.commands.tune import delegates_of
    from oplet.cli.console import Printer, print_json
    from oplet.cli.progress import progress_bars
    from oplet.tools.benchmarking.warming import warm_up

    plugins = settings.plugins(custom_op_library)
    with progress_bars() as progress:
        done = warm_up(
            model,
            num_threads=num_threads,
            plugins=plugins,
            delegates=delegates_of(model, delegate or (), plugins, num_threads),
            progress=progress,
        )
    if json:
        print_json({"model": done.model, "waited": done.waited, "seconds": done.seconds})
        return
    printer = Printer(wide)
    if done.waited:
        printer.line(f"Compiled the kernels of {done.waited} nodes in {done.seconds:.1f} seconds.", "bold")
    else:
        printer.line("All kernels are there.", "bold")
