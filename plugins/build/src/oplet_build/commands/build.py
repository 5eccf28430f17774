"""`oplet build`: a wheel that holds only the kernels that models need."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oplet_tools.cli.settings import (
    AllCodes,
    Debug,
    Json,
    ModelFiles,
    Ops,
    PluginSwitches,
    Preferred,
    Wide,
    check_preferred,
    option,
    settings_of,
)

if TYPE_CHECKING:
    from oplet_build.building.build_wheel import BuiltWheel
    from oplet_build.building.report import Report

__all__ = ["build"]

_DROPPED_SHOWN = 8


def build(
    context: typer.Context,
    name: Annotated[str, option(metavar="NAME", help="The new package's name in Python.")],
    models: ModelFiles = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="The folder to write the wheel into.")] = Path(
        "dist"
    ),
    op: Ops = None,
    all_codes: AllCodes = False,
    types: Annotated[bool, option("--types", help="Serve the tensor types of these models alone.")] = False,
    version: Annotated[str, typer.Option(metavar="VERSION", help="The wheel's version.")] = "1.0",
    keep_comments: Annotated[
        bool, option("--keep-comments", help="Copy the modules that are needed whole, with comments and docstrings.")
    ] = False,
    with_core: Annotated[
        bool,
        option(
            "--with-core",
            help="Include the part of oplet that runs them: a wheel that needs numpy alone (and Pillow for pictures).",
        ),
    ] = False,
    pyz: Annotated[bool, option("--pyz", help="With the core, as a program of one file; -o FILE.pyz asks for it too.")] = False,
    with_model: Annotated[bool, option("--with-model", help="Include the models, and a command that runs them.")] = False,
    python: Annotated[
        str | None,
        option(
            metavar="PATH", help="The interpreter in a program's first line (#!). Default: /usr/bin/env python3; '' for none."
        ),
    ] = None,
    no_bytecode: Annotated[
        bool, option("--no-bytecode", help="Leave compiled modules out of a program: smaller, starts slower.")
    ] = False,
    no_timing: Annotated[bool, option("--no-timing", help="Do not measure import times for the report.")] = False,
    json: Json = False,
    wide: Wide = False,
    p: PluginSwitches = None,
    prefer: Preferred = None,
    debug: Debug = False,
) -> None:
    """Build a wheel of just the kernels that these models need, cut out of the installed op packages.

    With --with-core it runs them without oplet; with --pyz it is one file that Python runs.
    """
    settings = settings_of(context, p, debug)
    if not models and not op:
        raise typer.BadParameter("Name a model, or an op with --op.", param_hint="MODEL")
    pyz = pyz or output.suffix == ".pyz"
    if with_model and not models:
        raise typer.BadParameter("There is no model to take along.", param_hint="--with-model")
    if with_model and not (with_core or pyz):
        raise typer.BadParameter("goes with --with-core or --pyz; a wheel of kernels holds no models.", param_hint="--with-model")
    if (no_bytecode or python is not None) and not pyz:
        hint = "--no-bytecode" if no_bytecode else "--python"
        raise typer.BadParameter("goes with --pyz.", param_hint=hint)
    from oplet_build.building.build_program import build_program
    from oplet_build.building.build_wheel import build_wheel
    from oplet_build.building.packing.payload import INTERPRETER
    from oplet_build.building.report import make_report
    from oplet_build.selection.needs import SelectionError
    from oplet_tools.cli.console import print_json
    from oplet_tools.cli.progress import progress_bars

    _check_folder(output.parent if pyz or output.suffix == ".pyz" else output)
    plugins = settings.plugins()
    check_preferred(prefer, plugins)
    what: dict[str, Any] = {
        "ops": op or (),
        "all_codes": all_codes,
        "types": types,
        "version": version,
        "keep_comments": keep_comments,
        "plugins": plugins,
        "prefer": prefer,
    }
    with progress_bars() as progress:
        tell = progress or (lambda what, part: None)
        tell("cutting out the kernels", 0.0)
        try:
            if with_core or pyz:
                built: BuiltWheel = build_program(
                    models or (),
                    name,
                    output,
                    pyz=pyz,
                    with_models=with_model,
                    interpreter=INTERPRETER if python is None else python,
                    bytecode=not no_bytecode,
                    **what,
                )
            else:
                built = build_wheel(models or (), name, output, **what)
        except SelectionError as error:
            raise typer.BadParameter(str(error), param_hint="--op") from error
        tell("cutting out the kernels", 1.0)
        first = str(models[0]) if models else None
        report = make_report(built, plugins, model=first, timing=not no_timing, progress=tell)
    if json:
        print_json({**built.as_dict(), "report": report.as_dict()})
    else:
        _show(built, report, wide)


def _show(built: BuiltWheel, report: Report, wide: bool) -> None:
    from oplet_build.building.providers import passed_over_sentences
    from oplet_tools.cli.console import Printer

    printer = Printer(wide)
    printer.line(str(built.path), "bold")
    rows = []
    for kernel in built.cut.kernels:
        versions = {kernel.min_version, kernel.max_version}
        kind = " (composite)" if kernel.composite else " (custom)" if kernel.custom else ""
        kind += ", nodes that are declined" if kernel.fallback else ""
        rows.append((kernel.op + kind, "-".join(map(str, sorted(versions))), kernel.distribution))
    printer.table("", ["op~", "versions", "from"], rows)
    sources = ", ".join(f"{source.name} {source.version}" for source in built.cut.sources)
    printer.line()
    printer.line(f"{len(built.cut.modules)} modules of {sources}, {built.path.stat().st_size} bytes")
    printer.line(f"requires {', '.join(built.requires)}")
    printer.table("", ["", "installed#", "built#", "built / installed#"], report.rows())
    if report.dropped:
        shown = report.dropped[:_DROPPED_SHOWN]
        more = f" and {len(report.dropped) - len(shown)} more" if len(report.dropped) > len(shown) else ""
        printer.line()
        printer.line(f"left out: {', '.join(shown)}{more}", "dim")
    for text in filter(None, (report.compared, report.needs)):
        printer.line()
        printer.line(text, "dim")
    for note in [*passed_over_sentences(built.cut.passed_over), *report.notes]:
        printer.line(note, "yellow")


def _check_folder(path: str | os.PathLike[str]) -> None:
    """Check that a folder can probably be created, with its parents, and written in.

    Raises:
        OSError: a part of the path is not a folder, or its innermost existing folder is not writeable; `filename` is `path`.
    """
    there = os.path.abspath(path)
    while not os.path.lexists(there):
        there = os.path.dirname(there)
    trouble = 0 if os.access(there, os.W_OK | os.X_OK) else errno.EACCES
    if not os.path.isdir(there):
        trouble = errno.ENOTDIR
    if trouble:
        raise OSError(trouble, os.strerror(trouble), os.fspath(path))
