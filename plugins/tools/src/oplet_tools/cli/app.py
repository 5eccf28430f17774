"""The typer application with all commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

import oplet
from oplet_tools.cli.commands.behind import behind
from oplet_tools.cli.commands.benchmark import benchmark
from oplet_tools.cli.commands.compare import compare
from oplet_tools.cli.commands.doctor import doctor
from oplet_tools.cli.commands.explore import explore
from oplet_tools.cli.commands.inspect import inspect
from oplet_tools.cli.commands.new_op import new_delegate, new_op
from oplet_tools.cli.commands.partition import partition
from oplet_tools.cli.commands.plugins import plugins
from oplet_tools.cli.commands.rewrite import rewrite
from oplet_tools.cli.commands.run import run
from oplet_tools.cli.commands.tune import tune
from oplet_tools.cli.commands.versions import versions
from oplet_tools.cli.litert_options import BenchmarkCommand
from oplet_tools.cli.plugin_commands import Command, Commands
from oplet_tools.cli.settings import Debug, PluginSwitches, settings_of

__all__ = ["COMMANDS", "app"]

app = typer.Typer(
    cls=Commands,
    help="Run .tflite models; every operator is a plugin that pip installs.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"oplet {oplet.__version__}")
        raise typer.Exit


@app.callback()
def common(
    context: typer.Context,
    p: PluginSwitches = None,
    debug: Debug = False,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Run .tflite models; every operator is a plugin that pip installs."""
    settings_of(context, p, debug)


#: The commands, in the order of `oplet --help`, with what it says of each: sentences that fit a line of 80 characters.
COMMANDS: dict[Callable[..., None], str] = {
    run: "Run a model on files, or on random values.",
    compare: "Run a model in two ways and compare the answers.",
    explore: "Show the graph of a model in a browser.",
    partition: "Show which nodes delegates would take, and why not.",
    benchmark: "Measure the time and memory that a model takes.",
    tune: "Measure every installed way to run a model.",
    inspect: "Show what is in a model file, and who would run it.",
    versions: "Show versions of ops, and which runtimes have them.",
    rewrite: "Write a model anew, with the lowest versions.",
    doctor: "Show what a model needs, and what to install for it.",
    plugins: "List the installed plugins and what each one brings.",
    new_op: "Write a package that brings an op.",
    new_delegate: "Write a package that brings a delegate.",
    behind: "Run a program that was written for LiteRT on oplet.",
}
for command, summary in COMMANDS.items():
    # What follows the name of a program is the program's.
    settings = {"allow_interspersed_args": False} if command is behind else None
    cls = BenchmarkCommand if command is benchmark else Command
    app.command(cls=cls, short_help=summary, context_settings=settings)(command)
