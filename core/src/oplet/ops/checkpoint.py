"""Where a kernel lets its run be stopped, and says what memory it takes besides its tensors."""

from __future__ import annotations

import threading
from typing import Protocol

__all__ = ["Meter", "charge", "checkpoint", "current_meter", "swap_meter"]


class Meter(Protocol):
    """The limits of a run. Threads that work for it ask the same one at once."""

    def check(self) -> None:
        """Raise if the run is to end."""

    def charge(self, nbytes: int) -> None:
        """Raise if so many bytes more are not allowed."""


class _Current(threading.local):
    meter: Meter | None = None


_current = _Current()


def checkpoint() -> None:
    """Say, in a loop of a kernel that may go round very often, that it can be stopped here.

    The runtime looks at deadlines and `cancel` between nodes; a loop whose length comes from the model or its inputs
    calls this every now and then. It costs less than a numpy call, and does nothing where no interpreter runs.

    Raises:
        CancelledError: another thread asked for the end of the run; let it pass.
        DeadlineError: the run took longer than is allowed; let it pass.
    """
    meter = _current.meter
    if meter is not None:
        meter.check()


def charge(nbytes: int) -> None:
    """Say, before it is made, how much memory a kernel takes that is no tensor: tables, lists of calls, scratch of one invoke.

    What is charged in `prepare` and `bind` counts against `Limits.max_arena_bytes` until the node is prepared again; what is charged
    while a node runs counts for that moment. It does nothing where no interpreter runs. Small amounts need not be charged.

    Args:
        nbytes: bytes, estimated where they cannot be known.

    Raises:
        LimitError: the model may not take so much; let it pass.
    """
    meter = _current.meter
    if meter is not None:
        meter.charge(nbytes)


def current_meter() -> Meter | None:
    """What the checkpoints and charges of this thread ask, for a thread that is to work for the same run; None where there is no run."""
    return _current.meter


def swap_meter(meter: Meter | None) -> Meter | None:
    """Have the checkpoints and charges of this thread ask another meter; returns the one that they asked so far."""
    before, _current.meter = _current.meter, meter
    return before
