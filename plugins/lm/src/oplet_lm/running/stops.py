"""Sequences of tokens that end an answer."""

from __future__ import annotations

from collections.abc import Iterable

from oplet.errors import ModelError

__all__ = ["Stops"]

_MOST, _LONGEST = 4096, 64


class Stops:
    """The sequences that end an answer, and how far one has come.

    Args:
        sequences: the sequences of ids.

    Raises:
        ModelError: there are too many of them.
    """

    def __init__(self, sequences: Iterable[tuple[int, ...]]) -> None:
        self._sequences = {each for each in sequences if 0 < len(each) <= _LONGEST}
        if len(self._sequences) > _MOST:
            raise ModelError(f"The bundle has {len(self._sequences)} stop sequences; {_MOST} are taken at most.")
        self._begun = {each[:count] for each in self._sequences for count in range(1, len(each))}
        self._longest = max(map(len, self._sequences), default=0)

    def ending(self, tokens: list[int]) -> int:
        """Return how many of the last tokens are a stop sequence; 0 if they are none."""
        return next((n for n in range(1, self._longest + 1) if tuple(tokens[-n:]) in self._sequences and n <= len(tokens)), 0)

    def begun(self, tokens: list[int]) -> int:
        """Return how many of the last tokens may become a stop sequence."""
        return next((n for n in range(min(self._longest - 1, len(tokens)), 0, -1) if tuple(tokens[-n:]) in self._begun), 0)
