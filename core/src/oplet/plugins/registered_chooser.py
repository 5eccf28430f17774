"""Registration of the chooser between engines, for interpreters with `experimental_delegates="auto"`.

The chooser measures interpreters, so its package is above theirs and they cannot import it. `oplet`, which is above both, registers it
here. This module imports nothing, as `import oplet` imports it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from oplet.plugins.engine_choice import Chooser

__all__ = ["register_chooser", "registered_chooser"]

_provided: list[Callable[[], Chooser]] = []


def register_chooser(load: Callable[[], Chooser]) -> None:
    """Register the chooser, in place of an earlier one.

    Args:
        load: a function that returns the chooser; called when the chooser is needed.
    """
    _provided[:] = [load]


def registered_chooser() -> Chooser:
    """The registered chooser.

    Raises:
        DelegateLoadError: none is registered.
    """
    from oplet.errors import DelegateLoadError

    if not _provided:
        raise DelegateLoadError("Nothing here chooses between engines; give a list of delegates (`load_delegate` makes them).")
    return _provided[0]()
