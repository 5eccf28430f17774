"""`load_delegate`: delegates of installed packages, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oplet.delegates.delegate import Delegate

__all__ = ["load_delegate"]


def load_delegate(library: str, options: Mapping[str, Any] | None = None) -> Delegate:
    """A new delegate of an installed package.

    Args:
        library: the delegate's name, as `oplet plugins` lists it.
        options: the delegate's options by name.

    Raises:
        DelegateLoadError: no package brings it, or it refuses the options (a ValueError, as LiteRT raises).

    Example:
        >>> from oplet import Interpreter, load_delegate
        >>> Interpreter("model.tflite", experimental_delegates=[load_delegate("example")])  # doctest: +SKIP
    """
    from oplet.plugins.manager import default_manager

    return default_manager().registry().find(library).create(options)
