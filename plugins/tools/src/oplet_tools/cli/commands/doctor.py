"""`oplet doctor`: whether a model can run here, and what is missing if not."""

from __future__ import annotations

import typer

from oplet.errors import PrepareError
from oplet_tools.cli.settings import Debug, Json, ModelFile, OpLibraries, PluginSwitches, Wide, settings_of

__all__ = ["doctor"]


def doctor(
    context: typer.Context,
    model: ModelFile,
    custom_op_library: OpLibraries = None,
    json: Json = False,
    wide: Wide = False,
    p: PluginSwitches = None,
    debug: Debug = False,
) -> None:
    """Show which operators a model needs, who supplies each one, and how to mend what is missing."""
    settings = settings_of(context, p, debug)
    from oplet_tools.cli.console import Printer, print_json
    from oplet_tools.describing.doctor import examine

    found, error = examine(model, settings.plugins(custom_op_library))
    missing = [entry for entry in found if not entry.provider]
    refused = [entry for entry in found if entry.provider and entry.refused]
    if json:
        print_json([entry.as_dict() for entry in found])
    else:
        printer = Printer(wide)
        rows = [
            (
                e.op + (" (custom)" if e.custom else " (composite)" if e.composite else ""),
                e.version,
                e.nodes,
                e.provided,
                e.provider or "nobody",
                e.first_runtime,
                e.fix,
            )
            for e in found
        ]
        printer.table("", ["op", "version#", "nodes#?", "provided??", "provider~", "first runtime??", "quick fix~"], rows)
        printer.line()
        if missing:
            printer.line(f"{len(missing)} of {len(found)} operators are missing: {', '.join(e.op for e in missing)}.", "bold")
        if refused:
            printer.line(f"The kernels of {', '.join(e.op for e in refused)} refuse a node of the model.", "bold")
        if not (missing or refused or error):
            printer.line(f"All {len(found)} operators are served.", "bold")
    if error:
        raise PrepareError(error)
    if missing or refused:
        raise typer.Exit(1)
