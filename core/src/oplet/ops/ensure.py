"""What a kernel tells the runtime: that it refuses an invalid node (`ensure`), or declines one that it does not support (`decline`), that
it is still at work and may be stopped (`checkpoint`), what memory it uses besides tensors (`charge`); which tensor is meant (`index_of`).
"""

from __future__ import annotations

from _thread import _local
from collections.abc import Callable
from typing import Any, NoReturn, Protocol

from oplet.errors import PrepareError

__all__ = [
    "Declined",
    "EnsureError",
    "Meter",
    "UnfitError",
    "charge",
    "checkpoint",
    "current_meter",
    "decline",
    "ensure",
    "ensure_fits",
    "foresee",
    "index_of",
    "swap_meter",
]


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


class _Current(_local):  # `threading.local`, whose module takes longer to import than a small model to open
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


def index_of(index: Any) -> int:
    """Return the index of a tensor as an integer; a TypeError says where it comes from."""
    try:
        return index.__index__()  # type: ignore[no-any-return]
    except (AttributeError, TypeError):
        raise TypeError(f"'index' of a tensor's details is an integer; this is of type {type(index).__name__}.") from None
