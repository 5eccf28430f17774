"""A template delegate: it claims float CONV_2D and MEAN nodes and runs them with numpy code of its own."""

from __future__ import annotations

from oplet import DelegateRegistry, hookimpl

#: The version of oplet's plugin API that this package is written for.
OPLET_API = "1"


@hookimpl
def register_delegates(registry: DelegateRegistry) -> None:
    """Register the delegate under the name `example`; the delegate is imported at first use."""
    registry.add("example", f"{__name__}.delegate:MyDelegate")
