"""The commands of plugins behind `oplet`: looked for when a name is none of oplet's own, and for `oplet --help`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

from oplet.errors import PluginError
from oplet.texts import logger_of
from oplet_tools.cli.settings import Settings

if TYPE_CHECKING:
    from oplet import CommandRegistry
    from oplet.toolkit import CommandEntry

__all__ = ["Command", "Commands"]

_FOUND = "oplet.commands"
_logger = logger_of("oplet.commands")


class Command(TyperCommand):
    """A command whose numbers are finite: "nan" and "1e999" are refused like other nonsense."""

    def parse_args(self, context: Any, args: list[str]) -> list[str]:
        rest: list[str] = super().parse_args(context, args)
        for parameter in self.params:
            value = context.params.get(parameter.name)
            if isinstance(value, float) and not math.isfinite(value):
                raise typer.BadParameter(f"{value} is no finite number.", ctx=context, param_hint=parameter.opts[0])
        return rest


class Commands(TyperGroup):
    """The commands of this package, and behind them those of plugins; no plugin is imported where a command of this package is named."""

    def get_command(self, context: Any, name: str) -> Any:
        own = super().get_command(context, name)
        if own is not None:
            return own
        entry = self._registry(context).find(name)
        return None if entry is None else _made(entry)

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
        """Return the commands of the plugins that -p leaves, looked for once."""
        found: CommandRegistry | None = context.meta.get(_FOUND)
        if found is None:
            settings = Settings()
            settings.add(context.params.get("p"), False)
            found = context.meta[_FOUND] = settings.plugins().commands()
            for entry in found.entries():
                if entry.name in self.commands:
                    _logger.warning(
                        "The command '%s' of %s is not reached: oplet has one of that name.", entry.name, entry.provenance
                    )
        return found


def _made(entry: CommandEntry) -> Any:
    """What typer makes of a plugin's command, plain as oplet's own are.

    Raises:
        PluginError: the plugin's command is none.
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
