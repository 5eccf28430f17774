"""The hooks of this package: it adds `oplet chat`, and opens bundles for `oplet inspect` and `oplet doctor`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oplet import CommandRegistry, hookimpl

#: The version of oplet's plugin API that this package is written for.
OPLET_API = "1"


@hookimpl
def register_commands(registry: CommandRegistry) -> None:
    """Add `oplet chat`."""
    registry.add("chat", "oplet_lm.commands.chat:chat", "Talk to a language model in a .litertlm or .task bundle.")


@hookimpl
def open_bundle(path: str) -> Mapping[str, Any] | None:
    """Return what is in a `.litertlm` or `.task` file, see `bundles.contents.contents`; None for a file of another kind."""
    from oplet_lm.bundles.contents import contents

    return contents(path)
