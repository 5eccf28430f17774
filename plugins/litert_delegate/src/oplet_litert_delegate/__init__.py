"""A delegate that runs the nodes that LiteRT supports in LiteRT itself, with XNNPACK; the rest stays with oplet."""

from __future__ import annotations

from oplet import DelegateRegistry, hookimpl

#: The version of oplet's plugin API that this package is written for.
OPLET_API = "1"


@hookimpl
def register_delegates(registry: DelegateRegistry) -> None:
    """Register the delegate under the name `litert`; LiteRT is imported at first use."""
    registry.add("litert", f"{__name__}.delegate:LiteRTDelegate", accelerates={"cpu": {}})
