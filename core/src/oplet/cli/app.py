"""The typer application with all commands."""

from __future__ import annotations

import math
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

import oplet
from oplet.cli.commands.behind import behind
from oplet.cli.commands.benchmark import benchmark
from oplet.cli.commands.build import build
from oplet.cli.commands.compare import compare
from oplet.cli.commands.doctor import doctor
from oplet.cli.commands.inspect import inspect
from oplet.cli.commands.new_delegate import new_delegate
from oplet.cli.commands.new_op import new_op
from oplet.cli.commands.partition import partition
from oplet.cli.commands.plugins import plugins
from oplet.cli.commands.rewrite import rewrite
from oplet.cli.commands.run import run
from oplet.cli.commands.select import select
from oplet.cli.commands.tune import tune
from oplet.cli.commands.versions import versions
from oplet.cli.settings import Debug, PluginSwitches, settings_of

__all__ = ["app"]

app = typer.Typer(
    help="Run .tflite models; every operator is a plugin that pip installs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Command(TyperCommand):
    """A command that refuses options with numbers that are not finite, such as "nan" and "1e999"."""

    def parse_args(self, context: Any, args: list[str]) -> list[str]:
        rest: list[str] = super().parse_args(context, args)
        for parameter in self.params:
            value = context.params.get(parameter.name)
            if isinstance(value, float) and not math.isfinite(value):
                raise typer.BadParameter(f"{value} is no finite number.", ctx=context, param_hint=parameter.opts[0])
        return rest


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


for command in (
    run,
    compare,
    partition,
    benchmark,
    tune,
    inspect,
    versions,
    rewrite,
    select,
    build,
    doctor,
    plugins,
    new_op,
    new_delegate,
):
    app.command(cls=Command)(command)
app.command(cls=Command, context_settings={"allow_interspersed_args": False})(behind)
