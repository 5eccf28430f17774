"""`oplet rewrite`: read a model, change it, and write it."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from oplet_tools.cli.settings import Debug, Json, ModelFile, PluginSwitches, Wide, option, settings_of

if TYPE_CHECKING:
    from oplet_tools.cli.console import Printer
    from oplet_tools.rewriting.rewrite import RewriteReport

__all__ = ["rewrite"]

_LARGEST_METADATA = 256 << 20


class Constants(str, Enum):
    """Where constants are placed in the file."""

    inside = "inside"
    outside = "outside"


def rewrite(
    context: typer.Context,
    model: ModelFile,
    output: Annotated[Path, option("--output", "-o", metavar="OUT", help="The file to write.")],
    keep_versions: Annotated[
        bool, option("--keep-versions", help="Leave operators their versions instead of the lowest that do.")
    ] = False,
    strip: Annotated[bool, option("--strip", help="Leave out what running the model does not need.")] = False,
    batch: Annotated[
        int | None, option(metavar="N", help="The batch size that inputs and all that follows get; -1 leaves it free.")
    ] = None,
    metadata: Annotated[
        list[str] | None, option(metavar="NAME=FILE", help="Add or replace a metadata entry. May be given several times.")
    ] = None,
    remove_metadata: Annotated[
        list[str] | None, option(metavar="NAME", help="Remove a metadata entry. May be given several times.")
    ] = None,
    description: Annotated[str | None, option(metavar="TEXT", help="The model's new description.")] = None,
    constants: Annotated[
        Constants | None, option(help="Put constants inside the FlatBuffer, or outside, behind it. Default: as they are.")
    ] = None,
    drop_unreferenced: Annotated[
        bool, option("--drop-unreferenced", help="Leave out bytes at the end of the file that nothing refers to.")
    ] = False,
    force: Annotated[bool, option("--force", help="OUT may be MODEL itself.")] = False,
    json: Json = False,
    wide: Wide = False,
    p: PluginSwitches = None,
    debug: Debug = False,
) -> None:
    """Write a model anew: the lowest versions of its operators, the runtime that it needs, and what the options say."""
    settings = settings_of(context, p, debug)
    if batch is not None and batch != -1 and batch < 1:
        raise typer.BadParameter(
            f"{batch} is not a batch size; give a positive number, or -1 to leave it free.", param_hint="--batch"
        )
    from oplet_tools.cli.console import Printer, print_json
    from oplet_tools.rewriting.rewrite import rewrite_file

    report = rewrite_file(
        model,
        output,
        force=force,
        constants=None if constants is None else constants.value,
        unreferenced="drop" if drop_unreferenced else "keep",
        lowest_versions=not keep_versions,
        strip_unused=strip,
        batch=batch,
        metadata=dict(map(_named, metadata or ())),
        remove_metadata=remove_metadata or (),
        description=description,
        plugins=settings.plugins(),
    )
    if json:
        print_json({"file": str(model), "output": str(output)} | report.as_dict())
    else:
        _print_report(Printer(wide), str(output), report)


def _named(text: str) -> tuple[str, bytes]:
    from oplet.toolkit import read_file

    name, equals, file = text.partition("=")
    if not name or not equals or not file:
        raise typer.BadParameter(f"'{text}' is not of the form NAME=FILE.", param_hint="--metadata")
    return name, read_file(file, _LARGEST_METADATA)


def _print_report(printer: Printer, output: str, report: RewriteReport) -> None:
    printer.line(output, "bold")
    rows: list[tuple[object, ...]] = [("bytes", *report.bytes.values())]
    for what, change in (("minimum runtime", report.minimum_runtime), ("noted in the file", report.noted_runtime)):
        rows.append((what, *(release or "-" for release in change.values())))
    printer.table("", ["", "before", "after"], rows)
    if report.versions:
        changes = [(entry["op"], entry["before"], entry["after"], entry["nodes"]) for entry in report.versions]
        printer.table("versions", ["op", "before#", "after#", "nodes#"], changes)
    if report.stripped:
        printer.table("left out", ["what", "count#"], list(report.stripped.items()))
    if report.metadata:
        printer.table("metadata", ["name", ""], list(report.metadata.items()))
    if report.unreferenced:
        what = "written as they are; --drop-unreferenced leaves them out" if report.unreferenced_kept else "left out"
        printer.line(f"{report.unreferenced} bytes at the end of the file that nothing refers to: {what}")
    if report.batch is not None:
        printer.line()
        checked = "runs compared" if report.batch_checked else "not compared by running: the model did not run on random values"
        printer.line(f"batch: {'free' if report.batch < 0 else report.batch} ({checked})", "bold")
        for text in report.batch_changes:
            printer.line(text)
