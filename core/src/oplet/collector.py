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


def collecting_rarely(function: Called) -> Called:
    """Return the function so that, while it runs, the garbage collector waits for a million new objects rather than for hundreds.

    It would run dozens of times while a process comes to its first model, and find nothing. Afterwards the thresholds are as before, also
    when the function raises, except where somebody else has set them meanwhile; `gc.disable` and `gc.enable` work as ever. If modules
    were imported, all objects count as old then, as after two collections: modules stay, and so do most objects that are made with them.
    """
    frozen = False

    @wraps(function)
    def rarely(*arguments: Any, **named: Any) -> Any:
        nonlocal frozen
        often, modules = gc.get_threshold(), len(sys.modules)
        if not 0 < often[0] < _RARELY:  # switched off, or set so by a call that this one is in, or by one of another thread
            return function(*arguments, **named)
        gc.set_threshold(_RARELY, *often[1:])
        try:
            return function(*arguments, **named)
        finally:
            if gc.get_threshold()[0] == _RARELY:
                gc.set_threshold(*often)
            # Counting walks over them: a program that has been seen to freeze objects is left alone for good.
            if len(sys.modules) > modules and not frozen and not (frozen := gc.get_freeze_count() > 0):
                gc.freeze()
                gc.unfreeze()

    return cast("Called", rarely)
