"""`oplet plugins`: the installed plugins, with their operators and delegates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from oplet_tools.cli.settings import Debug, Json, PluginSwitches, Wide, settings_of

if TYPE_CHECKING:
    from oplet.toolkit import PluginInfo

__all__ = ["plugins"]

_SHOWN = 8


def plugins(
    context: typer.Context, json: Json = False, wide: Wide = False, p: PluginSwitches = None, debug: Debug = False
) -> None:
    """List the installed plugins and what each one brings."""
    settings = settings_of(context, p, debug)
    from oplet.toolkit import BUILTIN_OPS, install_command
    from oplet_tools.cli.console import Printer, print_json

    found = settings.plugins().plugins()
    if json:
        print_json([info.as_dict() for info in found])
        return
    printer = Printer(wide)
    if not found:
        command = install_command(BUILTIN_OPS)
        printer.line(f"No plugin is installed, so no operator can run; {command} brings the usual ones.")
        return
    rows = [
        (
            i.name,
            f"{i.distribution} {i.version}".strip(),
            i.state,
            i.tier,
            i.api,
            _ops(i),
            ", ".join(i.delegates),
            ", ".join(i.commands),
        )
        for i in found
    ]
    printer.table("", ["plugin", "package?", "state", "tier??", "api???", "ops~", "delegates~", "commands~??"], rows)
    for info in found:
        for text in (info.error, *info.notes):
            if text:
                printer.line(f"{info.name}: {text}")


def _ops(info: PluginInfo) -> str:
    names = [op for op, _, _ in info.ops]
    if len(names) <= _SHOWN:
        return ", ".join(names)
    return f"{len(names)}: {', '.join(names[:_SHOWN])}, ..."
