"""Sequences of tokens that end an answer."""

from __future__ import annotations

from collections.abc import Iterable

from oplet.errors import ModelError

__all__ = ["Stops"]

_MOST, _LONGEST = 4096, 64


class Stops:
    """Finds stop sequences, tuples of token ids that end an answer, at the end of generated tokens."""

    def __init__(self, sequences: Iterable[tuple[int, ...]]) -> None:
        self._sequences = {each for each in sequences if 0 < len(each) <= _LONGEST}
        if len(self._sequences) > _MOST:
            raise ModelError(f"The bundle has {len(self._sequences)} stop sequences; {_MOST} are taken at most.")
        self._begun = {each[:count] for each in self._sequences for count in range(1, len(each))}

    def ending(self, tokens: list[int]) -> int:
        """Return the length of the stop sequence that the tokens end with; 0 if there is none."""
        return next((n for n in range(1, len(tokens) + 1) if tuple(tokens[-n:]) in self._sequences), 0)

    def begun(self, tokens: list[int]) -> int:
        """Return how many tokens at the end may be the beginning of a stop sequence; 0 if none."""
        return next((n for n in range(len(tokens), 0, -1) if tuple(tokens[-n:]) in self._begun), 0)
