"""Checkpoints, at which a run can be stopped, and accounting of memory that kernels use besides tensors."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

__all__ = ["Meter", "charge", "checkpoint", "current_meter", "foresee", "swap_meter"]


class Meter(Protocol):
    """Protocol: checks a run's deadline, memory limit and cancellation, and raises where one is over; all threads of a run share it."""

    def check(self) -> None:
        """Raise if the run was cancelled or exceeded its deadline."""

    def foresee(self, seconds: float) -> None:
        """Raise, as `check` does, or if the deadline would have passed after so many more seconds."""

    def charge(self, nbytes: int) -> None:
        """Count bytes that a kernel allocates besides its tensors, and raise if they exceed the limit."""

    def keep(self, nbytes: int) -> Callable[[int], None]:
        """Count bytes that outlive the node's run, and raise if too many; return a function that subtracts freed bytes, in any thread."""


class _Current(threading.local):
    meter: Meter | None = None


_current = _Current()


def checkpoint() -> None:
    """Raise an error if the run was cancelled or exceeded its deadline. To be called in long loops of a kernel.

    The runtime checks deadlines and `cancel` between nodes only, so a loop whose length depends on the model or its inputs should
    call this regularly. It costs less than a numpy call, and does nothing outside of a run.

    Raises:
        CancelledError: another thread cancelled the run; do not catch it.
        DeadlineError: the run took longer than is allowed; do not catch it.
    """
    meter = _current.meter
    if meter is not None:
        meter.check()


def foresee(seconds: float) -> None:
    """Raise, as `checkpoint` does, or if a call that takes so long and cannot be interrupted would exceed the deadline.

    Args:
        seconds: the estimated duration of the call, on a fast machine.

    Raises:
        CancelledError: another thread cancelled the run; do not catch it.
        DeadlineError: the run takes longer than is allowed, or would; do not catch it.
    """
    meter = _current.meter
    if meter is not None:
        meter.foresee(seconds)


def charge(nbytes: int) -> None:
    """Account for memory of a kernel that is not a tensor, before it is allocated: tables, lists of calls, scratch of one run.

    Charges in `prepare` and `bind` count against `Limits.max_arena_bytes` until the node is prepared again; a charge at run time is
    compared with the limit once. It does nothing outside of a run. Small amounts need not be charged.

    Args:
        nbytes: number of bytes, an estimate where the exact number is unknown.

    Raises:
        LimitError: the memory exceeds the limit; do not catch it.
    """
    meter = _current.meter
    if meter is not None:
        meter.charge(nbytes)


def current_meter() -> Meter | None:
    """Return the meter (deadline, memory limit) of this thread's run, for threads that work for the run; None outside of one."""
    return _current.meter


def swap_meter(meter: Meter | None) -> Meter | None:
    """Set the meter (deadline, memory limit) of this thread, None for no run; return the previous one."""
    before, _current.meter = _current.meter, meter
    return before
