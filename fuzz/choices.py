"""Where a mutation's decisions come from: a seeded generator, or the bytes that a fuzzing engine hands out."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

__all__ = ["Choices", "FuzzedChoices", "SeededChoices"]

T = TypeVar("T")


class Choices(Protocol):
    """Decisions."""

    def below(self, limit: int) -> int:
        """A number of 0 to limit - 1."""
        ...

    def chance(self, percent: int) -> bool:
        """True in that many cases of 100."""
        ...

    def choice(self, options: Sequence[T]) -> T:
        """One of the options."""
        ...

    def raw(self, count: int) -> bytes:
        """So many bytes."""
        ...


class SeededChoices:
    """Decisions of Python's generator: the same for the same seed, on every machine and Python."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def below(self, limit: int) -> int:
        return int(self._random.random() * limit)

    def chance(self, percent: int) -> bool:
        return self._random.random() * 100 < percent

    def choice(self, options: Sequence[T]) -> T:
        return options[int(self._random.random() * len(options))]

    def raw(self, count: int) -> bytes:
        return self._random.getrandbits(8 * count).to_bytes(count, "little") if count else b""


class FuzzedChoices:
    """Decisions read from the input of a fuzzing engine (`atheris.FuzzedDataProvider`); zeros when it has no more."""

    def __init__(self, provider: Any) -> None:
        self._provider = provider

    def below(self, limit: int) -> int:
        return int(self._provider.ConsumeIntInRange(0, limit - 1)) if limit > 1 else 0

    def chance(self, percent: int) -> bool:
        return self.below(100) < percent

    def choice(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]

    def raw(self, count: int) -> bytes:
        return bytes(self._provider.ConsumeBytes(count)).ljust(count, b"\0")
