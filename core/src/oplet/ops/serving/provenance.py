"""Provenance of registrations: plugin, package and module."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Provenance"]


@dataclass(frozen=True)
class Provenance:
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
