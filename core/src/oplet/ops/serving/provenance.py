"""Provenance of registrations (plugin, package and module), and the keys of custom ops and composites under which they are found."""

from __future__ import annotations

import importlib
from typing import Any

from oplet.errors import PluginError, failures, text_of
from oplet.records import Record, Row

__all__ = ["Composite", "CustomPrefix", "Provenance", "import_registered", "matches"]


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


class CustomPrefix(Record):
    """The key, in resolvers, of a family of custom ops whose names have one prefix.

    Attributes:
        prefix: the prefix of the names, such as "Flex".
    """

    prefix: str

    @property
    def name(self) -> str:
        """The prefix with an asterisk, as tables and messages show the family."""
        return f"{self.prefix}*"

    def __str__(self) -> str:
        return self.name


def matches(pattern: str, name: str) -> bool:
    """Return whether a pattern, an op's name or a prefix with an asterisk, matches the op `name`."""
    return pattern == name or (pattern.endswith("*") and name.startswith(pattern[:-1]))


class Composite(Record):
    """The key, in resolvers, of a composite op (custom ops have names as keys, built-in operators their codes).

    In a model a composite is a node of the operator STABLEHLO_COMPOSITE. Its options have the name, a version (converters write
    0), attributes, and the index of a subgraph, its decomposition, which computes the same with other ops.

    Attributes:
        name: the composite's name, such as "odml.scaled_dot_product_attention".
    """

    name: str

    def __str__(self) -> str:
        return self.name
