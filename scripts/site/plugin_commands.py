"""The commands that the packages in plugins/ add, imported from their folders: what they stand on need not be installed."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Any

import typer

__all__ = ["plugin_commands"]

_ADDED = re.compile(r"""registry\.add\(\s*"([\w-]+)",\s*"([\w.]+):(\w+)\"""")


def plugin_commands(root: Path) -> dict[str, Any]:
    """The commands, by name, as `plugins/*/src/*/plugin.py` registers them."""
    found = {}
    for plugin in sorted(root.glob("plugins/*/src/*/plugin.py")):
        for name, module, attribute in _ADDED.findall(plugin.read_text("utf-8")):
            source = str(plugin.parent.parent)
            if source not in sys.path:
                sys.path.append(source)
            command = getattr(importlib.import_module(module), attribute)
            app = typer.Typer(add_completion=False, rich_markup_mode=None)
            app.callback()(lambda: None)  # so that it stays a group
            if isinstance(command, typer.Typer):
                app.add_typer(command, name=name)
            else:
                app.command(name)(command)
            made: Any = typer.main.get_command(app)
            found[name] = made.commands[name]
    return found
