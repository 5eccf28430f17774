"""`oplet select`: the ops that models need, as code that registers them and as a lock file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oplet.texts import counted
from oplet_tools.cli.settings import (
    AllCodes,
    Debug,
    Json,
    ModelFiles,
    OpLibraries,
    Ops,
    PluginSwitches,
    Preferred,
    Wide,
    check_preferred,
    option,
    settings_of,
)

if TYPE_CHECKING:
    from oplet import Model, PluginManager
    from oplet.toolkit import ResolverEntry
    from oplet_build.selection.providers import ServedOp

__all__ = ["select"]


def select(
    context: typer.Context,
    models: ModelFiles = None,
    op: Ops = None,
    all_codes: AllCodes = False,
    types: Annotated[bool, option("--types", help="Register ops for the tensor types of these models alone.")] = False,
    output: Annotated[
        Path | None, option("--output", "-o", metavar="FILE", help="Write Python code that registers just these ops.")
    ] = None,
    lock: Annotated[
        Path | None, option(metavar="FILE", help="Write a lock file: the ops, and the packages that serve them.")
    ] = None,
    requirements: Annotated[
        Path | None, option(metavar="FILE", help="Write a requirements.txt that pins these packages.")
    ] = None,
    check: Annotated[
        Path | None,
        option(
            metavar="LOCK",
            help="Ask whether a lock file has what the models need, and whether its packages are installed; exit with 1 if not.",
        ),
    ] = None,
    custom_op_library: OpLibraries = None,
    json: Json = False,
    wide: Wide = False,
    p: PluginSwitches = None,
    prefer: Preferred = None,
    debug: Debug = False,
) -> None:
    """Select the ops that models need: list them, register just these, lock the packages that serve them."""
    settings = settings_of(context, p, debug)
    if check is not None and (op or types or output or lock or requirements):
        raise typer.BadParameter("goes with models alone, not with what selects or writes.", param_hint="--check")
    if check is None and not models and not op:
        raise typer.BadParameter("Name a model, or an op with --op.", param_hint="MODEL")
    from oplet import Model

    targets = [path for path in (output, lock, requirements) if path is not None]
    if targets:
        from oplet_build.selection.resolver_code import check_generated

        for path in targets:
            check_generated(path)
        if len(set(map(os.path.abspath, targets))) < len(targets):
            raise typer.BadParameter("--output, --lock and --requirements must name different files.")
    plugins = settings.plugins(custom_op_library)
    check_preferred(prefer, plugins)
    opened = [Model.open(path) for path in models or ()]
    if check is not None:
        raise typer.Exit(_check(check, opened, all_codes, plugins, prefer, json))
    from oplet_build.selection.needs import SelectionError, needs_of
    from oplet_build.selection.providers import find_providers
    from oplet_build.selection.resolver_code import write_generated

    try:
        needs = needs_of(opened, ops=op or (), all_codes=all_codes)
    except SelectionError as error:
        raise typer.BadParameter(str(error), param_hint="--op") from error
    served = find_providers(needs, plugins, prefer=prefer)
    made: dict[Path, str] = {}  # all texts are generated before any file is written
    if output is not None:
        from oplet_build.selection.resolver_code import resolver_code

        made[output] = resolver_code(served, types=types)
    if lock is not None or requirements is not None:
        from oplet_build.selection.lock import lock_of
        from oplet_build.selection.lock import requirements as requirements_of

        locked = lock_of(served, opened)
        if lock is not None:
            made[lock] = locked.to_json()
        if requirements is not None:
            made[requirements] = requirements_of(locked)
    for path, text in made.items():
        write_generated(path, text)
    _show(served, list(made), json, wide)


def _show(served: list[ServedOp], written: list[Path], json: bool, wide: bool) -> None:
    from oplet_tools.cli.console import Printer, print_json

    if json:
        print_json({"ops": [_described(each) for each in served], "written": list(map(str, written))})
        return
    printer = Printer(wide)
    rows = []
    for each in served:
        kind = " (composite)" if each.need.composite else " (custom)" if each.need.custom else ""
        types = ", ".join(type.name.lower() for type in each.need.types) or "any"
        behind = "; what it declines: ".join(_packages(entries) for entries in (each.entries, *each.fallbacks))
        rows.append((each.need.name + kind, _ranges(each), types, behind))
    printer.table("", ["op", "versions", "types~?", "served by~"], rows)
    if written:
        printer.line()
        printer.line(f"written: {', '.join(map(str, written))}")


def _packages(entries: Iterable[ResolverEntry]) -> str:
    return ", ".join(dict.fromkeys(entry.load(entry.min_version).source for entry in entries))


def _ranges(each: ServedOp) -> str:
    spans = ((c.min_version, c.max_version) for c in each.entries)
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)


def _described(each: ServedOp) -> dict[str, Any]:
    return {
        "op": each.need.name,
        "custom": each.need.custom,
        "composite": each.need.composite,
        "versions": list(each.versions),
        "types": [type.name for type in each.need.types],
        "models": list(each.need.models),
        "served_by": [_entry(entry) for entry in each.entries],
        **({"fallbacks": [[_entry(entry) for entry in entries] for entries in each.fallbacks]} if each.fallbacks else {}),
    }


def _entry(entry: ResolverEntry) -> dict[str, Any]:
    return {
        "distribution": entry.provenance.distribution,
        "version": entry.provenance.version,
        "plugin": entry.provenance.plugin,
        "min_version": entry.min_version,
        "max_version": entry.max_version,
        "library": os.path.basename(entry.load(entry.min_version).library),
    }


def _check(path: Path, models: list[Model], all_codes: bool, plugins: PluginManager, prefer: list[str] | None, json: bool) -> int:
    from oplet_build.selection.check import check_installed, check_models
    from oplet_build.selection.lock import Lock
    from oplet_tools.cli.console import Printer, print_json

    lock = Lock.read(path)
    in_models, in_packages = check_models(lock, models, all_codes=all_codes), check_installed(lock, plugins, prefer)
    problems = [*in_models, *in_packages]
    if json:
        print_json(
            {
                "lock": str(path),
                "holds": not problems,
                "models": [problem.as_dict() for problem in in_models],
                "installed": [problem.as_dict() for problem in in_packages],
            }
        )
        return 1 if problems else 0
    printer = Printer()
    for problem in problems:
        printer.line(problem.text)
    if in_models:
        printer.line(f"{path} has to be made anew, with these models: oplet select MODEL... --lock {path}")
    if not problems:
        printer.line(f"{path} holds: {counted(len(models), 'model')} and {counted(len(lock.distributions), 'package')} checked.")
    return 1 if problems else 0
