"""`load_delegate`: delegates of installed packages by name, and of shared libraries."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from oplet.delegates.delegate import Delegate

__all__ = ["load_delegate"]


def load_delegate(library: str | os.PathLike[str], options: Mapping[str, Any] | None = None) -> Delegate:
    """Return a new delegate of an installed package, or of a shared library.

    Args:
        library: the delegate's name, as `oplet plugins` lists it; or the path of a shared library (`libfoo.so`) that exports
            `tflite_plugin_create_delegate`, which oplet-native-ops loads.
        options: the delegate's options by name.

    Raises:
        DelegateLoadError: no package brings it, the library cannot be loaded, or it refuses the options (a ValueError, as LiteRT
            raises).

    Examples:
        >>> from oplet import Interpreter, load_delegate
        >>> Interpreter("model.tflite", experimental_delegates=[load_delegate("example")])  # doctest: +SKIP
    """
    from oplet.plugins.manager import default_manager

    return default_manager().registry().find(os.fsdecode(library)).create(options)
