"""The seam between interpreters, which are told `experimental_delegates="auto"`, and who chooses between engines.

Who measures stands above interpreters, since they are what it measures. So this is below both, and `oplet` itself, above all, says which
chooser there is. It imports nothing: whoever imports `oplet` imports it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from oplet.plugins.engine_choice import Chooser

__all__ = ["register_chooser", "registered_chooser"]

_provided: list[Callable[[], Chooser]] = []


def register_chooser(load: Callable[[], Chooser]) -> None:
    """Say where the chooser comes from, in place of what was said before.

    Args:
        load: returns it, when it is first needed.
    """
    _provided[:] = [load]


def registered_chooser() -> Chooser:
    """The chooser that there is.

    Raises:
        DelegateLoadError: there is none.
    """
    from oplet.errors import DelegateLoadError

    if not _provided:
        raise DelegateLoadError("Nothing here chooses between engines; give a list of delegates (`load_delegate` makes them).")
    return _provided[0]()
