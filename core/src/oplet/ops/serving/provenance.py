"""Provenance of registrations: plugin, package and module."""

from __future__ import annotations

import importlib
from typing import Any

from oplet.errors import PluginError, failures, text_of
from oplet.records import Row

__all__ = ["Provenance", "import_registered"]


class Provenance(Row):
    """The origin of a registration.

    Attributes:
        plugin: the entry point's name, or "application".
        distribution: the pip package, "" for the application's own code.
        version: that package's version.
        module: the module that registered it.
    """

    plugin: str = "application"
    distribution: str = ""
    version: str = ""
    module: str = ""

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}" if self.distribution else self.plugin


def import_registered(target: Any, what: str, provenance: Provenance) -> Any:
    """Return the object that a plugin registered, imported if it registered "module:NAME".

    Args:
        target: the object, or its "module:NAME".
        what: the object's name in error messages, such as "delegate 'mine'".
        provenance: the plugin.

    Raises:
        PluginError: the object cannot be imported.
    """
    if not isinstance(target, str):
        return target
    module, _, name = target.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except failures() as error:  # whatever a stranger's module does while it is imported
        raise PluginError(
            f"The {what} of {provenance} cannot be imported from '{target}': {text_of(error, named=True)}; upgrade or uninstall that package."
        ) from error
