"""The hooks that a plugin may implement; each is called at most once per plugin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from oplet.delegates.registry import DelegateRegistry
    from oplet.ops.serving.resolver import MutableOpResolver
    from oplet.ops.serving.work import WorkTable
    from oplet.plugins.commands import CommandRegistry
    from oplet.schema.enums import BuiltinOperator
    from oplet.versions.runtime_version import RuntimeVersions

__all__ = ["hookspec"]

hookspec = pluggy.HookspecMarker("oplet")


@hookspec
def register_ops(resolver: MutableOpResolver) -> None:
    """Add operators to `resolver` with `add_builtin`, `add_custom`, `add_custom_prefix` and `add_composite`; "module:NAME" imports kernels late."""


@hookspec
def register_delegates(registry: DelegateRegistry) -> None:
    """Add delegates to `registry` under the names by which `load_delegate` finds them, or with `add_loader` what loads libraries.

    A delegate that `serves` custom ops is applied by interpreters themselves where such an op has no kernel.
    """


@hookspec
def register_runtime_versions(table: RuntimeVersions) -> None:
    """Add to `table` the first release that runs each version of the plugin's own ops, for model writers and `oplet versions`."""


@hookspec
def register_work(table: WorkTable) -> None:
    """Add to `table` how the work of the plugin's ops is counted, for profiles: `table.add("Wave", function)`, which gives a `Work`."""


@hookspec
def register_commands(registry: CommandRegistry) -> None:
    """Add commands to `oplet` with `registry.add(name, command, help)`; give "module:NAME" to import a command late."""


@hookspec(firstresult=True)
def open_op_library(path: str, operators: Mapping[str | BuiltinOperator, str] | str | None) -> MutableOpResolver | None:
    """Return the operators of a file that is no Python package, as `--custom-op-library` names it; None if the plugin does not
    open such files.

    `operators` are the file's functions by the ops that they serve, one function's name, or None for all that it has. Raise a
    `PluginError` where the file is of the plugin's kind and cannot be used.
    """


@hookspec(firstresult=True)
def open_bundle(path: str) -> Mapping[str, Any] | None:
    """Return what is in a file that has models and other parts, for `oplet inspect` and `oplet doctor`; None if the plugin does not open
    such files.

    The keys: "kind", what the file is; "about", values by what they say; "parts", a list of (name, kind, number of bytes); "models", open
    `Model`s by name. Raise an `OpletError` where the file is of the plugin's kind and damaged.
    """
