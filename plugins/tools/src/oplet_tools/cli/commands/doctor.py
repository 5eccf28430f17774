"""`oplet doctor`: whether a model can run here, and what is missing if not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from oplet.errors import PrepareError
from oplet_tools.cli.settings import Debug, Json, ModelFile, OpLibraries, PluginSwitches, Wide, settings_of

if TYPE_CHECKING:
    from oplet_tools.cli.console import Printer
    from oplet_tools.describing.doctor import Diagnosis

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
    from oplet_tools.describing.bundles import open_bundle
    from oplet_tools.describing.doctor import examine

    plugins = settings.plugins(custom_op_library)
    bundle = open_bundle(model, plugins)
    examined = {"": examine(model, plugins)} if bundle is None else {n: examine(m, plugins) for n, m in bundle.models.items()}
    if json:
        listed = {name: [entry._asdict() for entry in found] for name, (found, _) in examined.items()}
        print_json(listed[""] if bundle is None else listed)
    else:
        printer = Printer(wide)
        for name, (found, error) in examined.items():
            _print(printer, name, found, error)
    if error := next((f"{name}: {error}" if name else error for name, (_, error) in examined.items() if error), ""):
        raise PrepareError(error)
    if not all(entry.is_served for found, _ in examined.values() for entry in found):
        raise typer.Exit(1)


def _print(printer: Printer, title: str, found: list[Diagnosis], error: str) -> None:
    """Print the operators of one model, and what is missing."""
    missing = [entry for entry in found if not entry.provider]
    refused = [entry for entry in found if entry.provider and entry.refused]
    kinds = [e.op + (" (custom)" if e.custom else " (composite)" if e.composite else "") for e in found]
    rows = [(op, e.version, e.nodes, e.provided, e.provider or "nobody", e.first_runtime) for op, e in zip(kinds, found)]
    printer.table(title, ["op", "version#", "nodes#?", "provided??", "provider~", "first runtime??"], rows)
    printer.line()
    if missing:
        printer.line(f"{len(missing)} of {len(found)} operators are missing: {', '.join(e.op for e in missing)}.", "bold")
    if refused:
        printer.line(f"The kernels of {', '.join(e.op for e in refused)} refuse a node of the model.", "bold")
    if not (missing or refused or error):
        printer.line(f"All {len(found)} operators are served.", "bold")
    fixes: dict[str, list[Diagnosis]] = {}
    for entry in found:
        if entry.fix:  # operators of one package have the same
            fixes.setdefault(entry.fix.replace(entry.op, ""), []).append(entry)
    for first, *more in fixes.values():
        printer.line(f"{', '.join(e.op for e in (first, *more))}: {first.fix}")
