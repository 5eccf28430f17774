"""A meter for tests of what is charged and how often the clock is looked at, without a model."""

from __future__ import annotations

from collections.abc import Callable

from oplet.errors import DeadlineError, LimitError

__all__ = ["CountingMeter", "Metered"]


class CountingMeter:
    """A meter that counts looks at the clock, and notes the largest charge."""

    def __init__(self, most: float = float("inf"), looks: float = float("inf"), seconds: float = float("inf")) -> None:
        self.most, self.looks, self.seconds, self.checked, self.charged = most, looks, seconds, 0, 0

    def check(self) -> None:
        self.checked += 1
        if self.checked > self.looks:
            raise DeadlineError("late")

    def foresee(self, seconds: float) -> None:
        self.check()
        if seconds > self.seconds:
            raise DeadlineError("long")

    def keep(self, nbytes: int) -> Callable[[int], None]:
        self.charge(nbytes)
        return lambda nbytes: None

    def charge(self, nbytes: int) -> None:
        self.charged = max(self.charged, nbytes)
        if nbytes > self.most:
            raise LimitError("much")


Metered = Callable[[CountingMeter], CountingMeter]
