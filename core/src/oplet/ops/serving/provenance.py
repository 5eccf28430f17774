"""Where registrations come from."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Provenance"]


@dataclass(frozen=True)
class Provenance:
    """Where a registration comes from.

    Attributes:
        plugin: the entry point's name, or "application".
        distribution: the pip package, "" for code that no package brought.
        version: that package's version.
        module: the module that registered it.
    """

    plugin: str = "application"
    distribution: str = ""
    version: str = ""
    module: str = ""

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}" if self.distribution else self.plugin
