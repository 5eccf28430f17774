"""Python's garbage collector, kept from going over what stays: modules that are imported, models that are opened and prepared."""

from __future__ import annotations

import gc
import sys
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable

    Called = TypeVar("Called", bound=Callable[..., Any])

__all__ = ["collecting_rarely"]

#: So many objects are made between two collections, in place of some hundreds.
_RARELY: Final = 1 << 20
#: Whether the program was seen to have frozen objects, which to count takes a walk over all of them.
_frozen = False


def collecting_rarely(function: Called) -> Called:
    """Return the function so that, while it runs, the garbage collector waits for a million new objects rather than for hundreds.

    It would run dozens of times while a process comes to its first model, and find nothing. Afterwards the thresholds are as before, also
    when the function raises, except where somebody else has set them meanwhile; `gc.disable` and `gc.enable` work as ever. If modules
    were imported, all objects count as old then, as after two collections: modules stay, and so do most objects that are made with them.
    """

    @wraps(function)
    def rarely(*arguments: Any, **named: Any) -> Any:
        often, modules = gc.get_threshold(), len(sys.modules)
        if not 0 < often[0] < _RARELY:  # switched off, or set so by a call that this one is in, or by one of another thread
            return function(*arguments, **named)
        gc.set_threshold(_RARELY, *often[1:])
        try:
            return function(*arguments, **named)
        finally:
            if gc.get_threshold()[0] == _RARELY:
                gc.set_threshold(*often)
            if len(sys.modules) > modules and not _is_frozen():  # what a program has frozen stays so
                gc.freeze()
                gc.unfreeze()

    return cast("Called", rarely)


def _is_frozen() -> bool:
    """Return whether the program has frozen objects, or had some when it was last asked."""
    global _frozen
    _frozen = _frozen or gc.get_freeze_count() > 0
    return _frozen
