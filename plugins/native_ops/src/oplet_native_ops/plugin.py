"""The hooks of this package: it loads delegates that are shared libraries."""

from __future__ import annotations

from oplet import DelegateRegistry, hookimpl

#: The version of oplet's plugin API that this package is written for.
OPLET_API = "1"


@hookimpl
def register_delegates(registry: DelegateRegistry) -> None:
    """Load delegates that are shared libraries, as `load_delegate` and `--delegate` name them."""
    registry.add_loader("oplet_native_ops.delegates.delegate:load_delegate_library")
