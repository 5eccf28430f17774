"""The hooks that a plugin may implement; each is called at most once per plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from oplet.delegates.registry import DelegateRegistry
    from oplet.ops.serving.resolver import MutableOpResolver
    from oplet.versions.runtime_version import RuntimeVersions

__all__ = ["hookimpl", "hookspec"]

hookspec = pluggy.HookspecMarker("oplet")
hookimpl = pluggy.HookimplMarker("oplet")


@hookspec
def register_ops(resolver: MutableOpResolver) -> None:
    """Add operators to `resolver` with `add_builtin`, `add_custom` and `add_composite`; "module:NAME" imports a kernel on demand."""


@hookspec
def register_delegates(registry: DelegateRegistry) -> None:
    """Add delegates to `registry` under the names by which `load_delegate` finds them, or with `add_loader` what loads libraries."""


@hookspec
def register_runtime_versions(table: RuntimeVersions) -> None:
    """Add to `table` the first release that runs each version of the plugin's own ops, for model writers and `oplet versions`."""
