"""The hooks of this package: it adds `oplet build` and `oplet select`."""

from __future__ import annotations

from oplet import CommandRegistry, hookimpl

#: The version of oplet's plugin API that this package is written for.
OPLET_API = "1"


@hookimpl
def register_commands(registry: CommandRegistry) -> None:
    """Add `oplet build` and `oplet select`."""
    registry.add("build", "oplet_build.commands.build:build", "Build a wheel of just the kernels that models need.")
    registry.add("select", "oplet_build.commands.select:select", "Select the ops that models need, and lock them.")
