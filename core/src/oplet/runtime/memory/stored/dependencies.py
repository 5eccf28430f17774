"""What a stored plan depends on besides its model: the settings, the plugins, the machine, and the sources of all code that has made it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from oplet.plugins.manager import PluginManager
    from oplet.plugins.selection import Preference

__all__ = ["STORE_VARIABLE", "all_sources", "are_unchanged", "files_of", "settings_of", "stores_plans"]

#: Sources that were found unchanged, by path, and since when: for so many seconds they are not looked at again, as this process has its code anyway.
_looked: dict[str, Stamp] = {}
_since, _SECONDS = 0.0, 1.0
#: The environment variable that switches stored plans off, with "off".
STORE_VARIABLE = "OPLET_PLANS"


#: A source file as it was: its path, its size in bytes, and the time of its last change in nanoseconds.
Stamp = tuple[str, int, int]


def stores_plans() -> bool:
    """Return whether plans are stored on disk and read from there: unless the environment variable OPLET_PLANS is "off"."""
    return os.environ.get(STORE_VARIABLE, "").lower() != "off"


def settings_of(manager: PluginManager, prefer: Preference) -> str | None:
    """Describe the settings, plugins and machine that a stored plan depends on, importing no plugin; None if a text cannot do so.

    Args:
        manager: the plugins.
        prefer: the plugins that the interpreter prefers where several serve an op.
    """
    recipe = manager.recipe()
    if recipe is None:
        return None
    plugins = [(i.name, i.distribution, i.version, i.module, i.state == "blocked") for i in manager.outline()]
    # PYTHONPATH may put another package before an installed one of its name and version, one that is not a kernel's too.
    variables = sorted(item for item in os.environ.items() if item[0].startswith("OPLET_") or item[0] == "PYTHONPATH")
    python = sys.version, sys.implementation.cache_tag, sys.prefix, sys.byteorder, sys.flags.optimize
    # Also where archives date all files alike, no other version reads what this one has written.
    version = sys.modules[_package(__name__)].__version__
    return repr((python, np.__version__, version, __file__, plugins, recipe, prefer, variables))


def _package(module: str) -> str:
    return module.partition(".")[0]


def _file_of(package: str) -> str:
    """Return the file that a top-level package is imported from; "" if that cannot be told without importing it."""
    loaded = sys.modules.get(package)
    found = (
        loaded.__spec__ if loaded is not None else next(filter(None, (f.find_spec(package, None) for f in sys.meta_path)), None)
    )
    return (found is not None and found.has_location and found.origin) or ""


def files_of(packages: Iterable[str]) -> dict[str, str]:
    """Map each package to the file that it is imported from, "" where that is unknown."""
    return {package: _file_of(package) for package in packages}


def all_sources(manager: PluginManager) -> list[Stamp] | None:
    """Return path, size and time of the source files of all imported modules of oplet and its plugins; None if a module has no
    file, or a plugin that may load is not loaded or has faults.

    Args:
        manager: the plugins.
    """
    wanted = {_package(__name__)}
    for plugin in manager.outline():
        if plugin.state != "blocked":
            if plugin.state != "loaded" or plugin.noted:
                return None
            wanted.add(_package(plugin.module))
    found: set[Stamp] = set()
    for name, module in list(sys.modules.items()):
        if module is None or _package(name) not in wanted:
            continue
        path = getattr(module, "__file__", None)
        if path is None and getattr(module, "__path__", None) is not None:
            continue  # a folder without a file of its own
        try:
            status = os.stat(path)  # type: ignore[arg-type]  # None raises a TypeError
        except (OSError, TypeError):
            return None
        found.add((str(path), status.st_size, status.st_mtime_ns))
    return sorted(found)


def are_unchanged(stamps: Sequence[Stamp], packages: Mapping[str, str]) -> bool:
    """Return whether source files still have the size and time they had, and packages are imported from the same places.

    Args:
        stamps: for each file its path, size in bytes and time of change.
        packages: by package the file that it was imported from.
    """
    global _since
    now = time.monotonic()
    if now - _since > _SECONDS:
        _looked.clear()
        _since = now
    if any(_file_of(package) != path for package, path in packages.items()):
        return False
    stat = os.stat
    try:
        for stamp in stamps:
            path, size, changed = stamp
            if _looked.get(path) == stamp:
                continue
            status = stat(path)
            if status.st_size != size or status.st_mtime_ns != changed:
                return False
            _looked[path] = stamp
    except OSError:
        return False
    return True
