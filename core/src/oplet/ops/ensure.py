"""How a kernel refuses a node, for all or for itself alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from oplet.errors import PrepareError

__all__ = ["Declined", "EnsureError", "decline", "ensure", "ensure_eq"]


class EnsureError(PrepareError):
    """A kernel's own reason, before the runtime adds which node it was."""


class Declined(EnsureError):
    """A kernel leaves the node to the next one in the order of precedence; where there is none, it is refused for this reason."""


def decline(reason: str) -> NoReturn:
    """Leave the node to the next provider, from `prepare`, before anything of the node or its tensors is changed.

    For what the kernel does not do and another may: an attribute, a type, a shape. What is wrong whoever serves the node is
    for `ensure`. The first provider is asked again in each prepare, as the reason may be gone with other shapes.

    Args:
        reason: what it does not do, and the values in question; `explain()` tells it.

    Raises:
        Declined: always.
    """
    raise Declined(reason)


def ensure(condition: object, message: str | Callable[[], str]) -> None:
    """Refuse the node unless `condition` holds.

    Args:
        condition: what must be true.
        message: the rule that was broken and the values that broke it; the runtime adds the node's number, op and
            tensors. Or a function that says so, where it would take long to write though nothing is wrong: to write of a
            tensor takes longer than most checks.

    Raises:
        EnsureError: the condition is false.
    """
    if not condition:
        raise EnsureError(message if isinstance(message, str) else message())


def ensure_eq(got: object, expected: object, what: str) -> None:
    """Refuse the node unless two values are equal.

    Args:
        what: what is compared, "the number of inputs".

    Raises:
        EnsureError: they differ; the message has both.
    """
    if got != expected:
        raise EnsureError(f"{what} is {got}, it must be {expected}.")
