"""Commands that plugins add to `oplet`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from oplet.errors import PluginError
from oplet.ops.serving.provenance import Provenance, import_registered
from oplet.records import Record

__all__ = ["CommandEntry", "CommandRegistry"]

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


class CommandEntry(Record):
    """A subcommand of `oplet` that a plugin adds.

    Attributes:
        name: the word that follows `oplet` on the command line.
        command: a `typer.Typer`, whose commands follow the name, or a function that typer makes a command of; or "module:NAME" of
            either.
        help: the line that `oplet --help` shows.
        provenance: which package brought it.
    """

    name: str
    command: Any
    help: str
    provenance: Provenance

    def load(self) -> Any:
        """Import the command if need be, and return it.

        Raises:
            PluginError: the command cannot be imported, or several packages bring a command of this name.
        """
        return import_registered(self.command, f"command '{self.name}'", self.provenance)


class _Conflict(CommandEntry):
    """A subcommand name that several packages claim: `load` raises an error that names them."""

    def load(self) -> Any:
        raise PluginError(str(self.command))


class CommandRegistry:
    """Commands by name; a plugin's `register_commands` adds to it.

    Examples:
        >>> from oplet import CommandRegistry
        >>> registry = CommandRegistry()
        >>> registry.add("hello", "my_package.cli:app", "Say hello.")
        >>> [entry.name for entry in registry.entries()]
        ['hello']
    """

    def __init__(self, provenance: Provenance | None = None) -> None:
        self.provenance = provenance or Provenance()
        self._entries: dict[str, list[CommandEntry]] = {}

    def add(self, name: str, command: Any, help: str) -> None:
        """Add a command to `oplet`. One whose name `oplet` itself uses is never reached; `oplet` says so in one line of warning.

        Args:
            name: small letters and digits, words joined by "-".
            command: a `typer.Typer`, a function that typer makes a command of, or "module:NAME" of either, which is imported when
                the command is used.
            help: one line, which `oplet --help` shows.

        Raises:
            PluginError: the name, the command or the help cannot be used.
        """
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise PluginError(f"A command is registered under {name!r}; give small letters and digits, words joined by '-'.")
        if not callable(command) and not (isinstance(command, str) and ":" in command):
            raise PluginError(
                f"The command '{name}' is registered with {command!r}, which is no typer.Typer, function or 'module:NAME'."
            )
        if not isinstance(help, str) or not help.strip():
            raise PluginError(f"The command '{name}' is registered without a line of help for `oplet --help`.")
        self._entries[name] = [CommandEntry(name, command, help.strip(), self.provenance)]

    def merge(self, other: CommandRegistry) -> None:
        """Take over every entry of another registry, with its provenance."""
        for name, entries in other._entries.items():
            self._entries.setdefault(name, []).extend(entries)

    def entries(self) -> Iterator[CommandEntry]:
        """Return all entries by name; where several packages claim a name, `load` of the entry raises an error that names
        them.
        """
        return (self._one(name, self._entries[name]) for name in sorted(self._entries))

    def find(self, name: str) -> CommandEntry | None:
        """Return the entry of a subcommand; None if there is none of that name."""
        return self._one(name, self._entries[name]) if name in self._entries else None

    def _one(self, name: str, entries: list[CommandEntry]) -> CommandEntry:
        if len(entries) == 1:
            return entries[0]
        packages = " and ".join(str(entry.provenance) for entry in entries)
        error = f"The command '{name}' is brought by {packages}; leave one out: oplet -p no:{entries[-1].provenance.plugin} {name} ..."
        return _Conflict(name, error, f"Brought by {packages}: leave one out with -p no:NAME.", entries[0].provenance)
