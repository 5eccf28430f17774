"""Where a kernel that takes long lets itself be stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable

__all__ = ["checkpoint", "swap_check"]

Check = Callable[[], None]


class _Current(threading.local):
    check: Check | None = None


_current = _Current()


def checkpoint() -> None:
    """Say, in a loop of a kernel that may go round very often, that it can be stopped here.

    The runtime looks at deadlines and `cancel` between nodes; a loop whose length comes from the model or its inputs
    calls this every now and then. It costs less than a numpy call, and does nothing where no interpreter runs.

    Raises:
        CancelledError: another thread asked for the end of the run; let it pass.
        DeadlineError: the run took longer than is allowed; let it pass.
    """
    check = _current.check
    if check is not None:
        check()


def swap_check(check: Check | None) -> Check | None:
    """Have the checkpoints of this thread call something else; returns what they called so far."""
    before, _current.check = _current.check, check
    return before
