"""Sources of a mutation's decisions: a seeded random generator, or the bytes of a fuzzing engine."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

__all__ = ["Choices", "FuzzedChoices", "SeededChoices"]

T = TypeVar("T")


class Choices(Protocol):
    """A source of decisions."""

    def below(self, limit: int) -> int:
        """An integer from 0 to limit - 1."""
        ...

    def chance(self, percent: int) -> bool:
        """True with a probability of `percent` / 100."""
        ...

    def choice(self, options: Sequence[T]) -> T:
        """One of the options."""
        ...

    def raw(self, count: int) -> bytes:
        """`count` bytes."""
        ...


class SeededChoices:
    """Decisions of Python's random generator; the same seed gives the same ones on every machine and Python."""

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
    """Decisions from the input of a fuzzing engine (`atheris.FuzzedDataProvider`); zeros when it is used up."""

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
