"""How a kernel refuses an invalid node (`ensure`), or declines one that it does not support, so that another kernel may serve it
(`decline`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from oplet.errors import PrepareError

__all__ = ["Declined", "EnsureError", "UnfitError", "decline", "ensure", "ensure_fits"]


class EnsureError(PrepareError):
    """A kernel refuses its node. The runtime adds the node to the message."""


class UnfitError(EnsureError):
    """A kernel refuses its node for the values or sizes of its inputs, which a resize or another branch may change.

    The error waits for the run: the model is prepared all the same, and the node fails if it runs with these values and sizes.
    """


class Declined(EnsureError):
    """A kernel does not support its node (declines it), so the next kernel for the op is tried. Without one the node is refused for this
    reason.
    """


def decline(reason: str) -> NoReturn:
    """Decline the node, so that the next kernel for its op is tried. Call it in `prepare`, before the node or its tensors are
    changed.

    It is for attributes, types and shapes that this kernel does not support and another one may; `ensure` is for nodes that are
    invalid for every kernel. Each prepare begins with the first kernel again, as other shapes may suit it.

    Args:
        reason: what the kernel does not support, with the values in question; `explain()` reports it.

    Raises:
        Declined: always.
    """
    raise Declined(reason)


def ensure(condition: object, message: str | Callable[[], str]) -> None:
    """Refuse the node unless `condition` holds.

    Args:
        condition: the condition that must be true.
        message: the rule that is broken, with the values that break it; the runtime adds the node's number, op and tensors. Or a function
            that returns the message, to save formatting where nothing is wrong: formatting a tensor takes longer than most checks.

    Raises:
        EnsureError: the condition is false.
    """
    if not condition:
        raise EnsureError(message if isinstance(message, str) else message())


def ensure_fits(condition: object, message: str | Callable[[], str]) -> None:
    """Refuse the node when it runs, unless `condition` on values or sizes of its inputs holds.

    Many models have sizes of 1 until a resize gives them their own, and branches that never run with the values they could not
    run with. So this refusal, in `prepare` or in `bind`, does not stop the model from being prepared. `ensure` is for what no
    resize changes (types, numbers of operands, ranks, options), and for what LiteRT refuses while it prepares.

    Args:
        condition: the condition that must be true when the node runs.
        message: the rule that is broken, with the values that break it; or a function that returns it.

    Raises:
        UnfitError: the condition is false.
    """
    if not condition:
        raise UnfitError(message if isinstance(message, str) else message())
