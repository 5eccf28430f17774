"""Subcommands that plugins add to `oplet`: searched when a name is none of oplet's own, and for `oplet --help`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

from oplet.errors import PluginError
from oplet.texts import logger_of
from oplet_tools.cli.settings import Settings

if TYPE_CHECKING:
    from oplet import CommandRegistry, PluginManager
    from oplet.toolkit import CommandEntry

__all__ = ["Command", "Commands"]

_FOUND = "oplet.commands"
_PLUGINS = "oplet.plugins"
_logger = logger_of("oplet.commands")


class Command(TyperCommand):
    """A command whose numeric options must be finite ("nan" and "1e999" are refused), and that tells where files of inputs go."""

    allow_extra_args = True  # refused below

    def parse_args(self, context: Any, args: list[str]) -> list[str]:
        rest: list[str] = super().parse_args(context, args)
        if rest and not context.resilient_parsing:
            way = ": inputs are given by --input" * any("--input" in parameter.opts for parameter in self.params)
            context.fail(f"Got unexpected extra argument(s) ({' '.join(rest)}){way}.")
        for parameter in self.params:
            value = context.params.get(parameter.name)
            if isinstance(value, float) and not math.isfinite(value):
                raise typer.BadParameter(f"{value} is no finite number.", ctx=context, param_hint=parameter.opts[0])
        return rest


class Commands(TyperGroup):
    """The command group `oplet`: its own commands, then those of plugins; calling one of its own commands imports no plugin."""

    def get_command(self, context: Any, name: str) -> Any:
        own = super().get_command(context, name)
        if own is not None:
            return own
        entry = self._registry(context).find(name)
        return None if entry is None else _made(entry)

    def resolve_command(self, context: Any, args: list[str]) -> Any:
        name = args[0]
        if not context.resilient_parsing and self.get_command(context, name) is None:
            from oplet.toolkit import known_command  # imported late: it imports numpy

            if package := known_command(name):
                context.fail(f"No such command '{name}': {self._absence(context, package)}.")
        return super().resolve_command(context, args)

    def list_commands(self, context: Any) -> list[str]:
        own: list[str] = super().list_commands(context)
        if not context.resilient_parsing:  # `--help` lists those of plugins in a section of their own
            return own
        return [*own, *(entry.name for entry in self._registry(context).entries() if entry.name not in own)]

    def format_commands(self, context: Any, formatter: Any) -> None:
        super().format_commands(context, formatter)
        rows = [
            (entry.name, f"{entry.help} ({entry.provenance})")
            for entry in self._registry(context).entries()
            if entry.name not in self.commands
        ]
        if rows:
            with formatter.section("Commands of plugins"):
                formatter.write_dl(rows)

    def _registry(self, context: Any) -> CommandRegistry:
        """Return the commands that plugins add, except plugins that -p switches off; they are collected once."""
        found: CommandRegistry | None = context.meta.get(_FOUND)
        if found is None:
            found = context.meta[_FOUND] = self._plugins(context).commands()
            for entry in found.entries():
                if entry.name in self.commands:
                    _logger.warning(
                        "The command '%s' of %s is not reached: oplet has one of that name.", entry.name, entry.provenance
                    )
        return found

    def _plugins(self, context: Any) -> PluginManager:
        """Return the manager of all plugins that `-p no:NAME` does not switch off; it is made once."""
        found: PluginManager | None = context.meta.get(_PLUGINS)
        if found is None:
            settings = Settings()
            settings.add(context.params.get("p"), False)
            found = context.meta[_PLUGINS] = settings.plugins()
        return found

    def _absence(self, context: Any, package: str) -> str:
        """Return why a command of `package` is not there: the package is broken, too old or not installed."""
        for info in self._plugins(context).plugins(load=False):
            if info.distribution == package:
                reason = info.error or "of a version that does not"
                return f"{package}, which brings it, is {'broken: ' * (info.state == 'broken')}{reason}"
        from oplet.toolkit import install_command

        return f"a package of its own brings it: {install_command(package)}"


def _made(entry: CommandEntry) -> Any:
    """Convert a plugin's command to a click command, styled as oplet's own.

    Raises:
        PluginError: what the plugin registered cannot be turned into a command.
    """
    command = entry.load()
    home = typer.Typer(add_completion=False, rich_markup_mode=None)
    home.callback()(lambda: None)  # so that it stays a group
    try:
        if isinstance(command, typer.Typer):
            home.add_typer(command, name=entry.name)
        else:
            home.command(entry.name, cls=Command)(command)
        made: Any = typer.main.get_command(home)
        return made.commands[entry.name]
    except Exception as error:  # typer raises various ones at signatures that it cannot read
        raise PluginError(
            f"The command '{entry.name}' of {entry.provenance} cannot be used: {type(error).__name__}: {error}; upgrade or uninstall "
            "that package."
        ) from error
