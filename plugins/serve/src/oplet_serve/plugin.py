"""Plugin hooks: adds the command `oplet serve`."""

from __future__ import annotations

from oplet import CommandRegistry, hookimpl

#: The version of oplet's plugin API that this package is written for.
OPLET_API = "1"


@hookimpl
def register_commands(registry: CommandRegistry) -> None:
    """Add the command `oplet serve`."""
    registry.add("serve", "oplet_serve.command:serve", "Serve models over REST and gRPC, by the Open Inference Protocol.")
