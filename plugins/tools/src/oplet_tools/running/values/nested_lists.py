"""Nested lists of numbers, as JSON has them, with every digit kept."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["NestedListError", "NestedNumbers"]

_DEEPEST = 32
_NUMBERS = frozenset((int, float, bool))


class NestedListError(ValueError):
    """Nested lists are not an array of numbers; the message says why, as the end of a sentence."""


class NestedNumbers:
    """Numbers in nested lists, before they have a type.

    Attributes:
        shape: the lengths of the lists, the outermost first.
        flat: the numbers in order.
        kinds: the Python types that occur.

    Raises:
        NestedListError: rows differ in length, or an element is not a number.
    """

    def __init__(self, value: Any) -> None:
        shape: list[int] = []
        level: list[Any] = [value]
        while level and all(isinstance(row, list) for row in level):
            if len(shape) == _DEEPEST:
                raise NestedListError(f"it has more than {_DEEPEST} dimensions")
            shape.append(len(level[0]))
            for number, row in enumerate(level):
                if len(row) != shape[-1]:
                    at = self._place(number, shape[:-1])
                    raise NestedListError(f"its rows differ in length: {at} has {len(row)} entries, and the first {shape[-1]}")
            level = list(chain.from_iterable(level))
        self.shape, self.flat, self.kinds = tuple(shape), level, frozenset(map(type, level))
        if self.kinds - _NUMBERS:
            if list in self.kinds:
                raise NestedListError("its rows differ in length: lists stand beside numbers")
            wrong = next(i for i, entry in enumerate(level) if type(entry) not in _NUMBERS)
            raise NestedListError(f"it has {_json(level[wrong])} at {self.place(wrong)}")
        if bool in self.kinds and len(self.kinds) > 1:
            mixed = next(i for i, entry in enumerate(level) if (type(entry) is bool) != (type(level[0]) is bool))
            raise NestedListError(f"it mixes true and false with numbers, at {self.place(mixed)}")

    @property
    def are_whole(self) -> bool:
        """Whether every number is written as an integer."""
        return self.kinds == {int}

    def place(self, position: int) -> list[int]:
        """Return the indices, in the nested lists, of the number at a position of `flat`."""
        return self._place(position, self.shape)

    def as_reals(self) -> NDArray[Any]:
        """Return the numbers as float64, or as booleans if all are true or false.

        Raises:
            NestedListError: an integer exceeds the range of float64.
        """
        if self.kinds == {bool}:
            return np.array(self.flat, np.bool_).reshape(self.shape)
        try:
            return np.array(self.flat, np.float64).reshape(self.shape)
        except OverflowError:
            wrong = next(i for i, number in enumerate(self.flat) if type(number) is int and number.bit_length() > 1023)
            raise NestedListError(f"the number at {self.place(wrong)} is beyond float64") from None

    def as_integers(self, dtype: np.dtype[Any], low: int, high: int) -> NDArray[Any]:
        """Return the numbers as integers of a dtype, without loss.

        Raises:
            NestedListError: a number has a fraction, or is not between `low` and `high`.
        """
        numbers = self.flat
        if self.kinds - {int}:
            wrong = next((i for i, n in enumerate(numbers) if type(n) is float and not n.is_integer()), -1)
            if wrong >= 0:
                raise NestedListError(f"{numbers[wrong]} at {self.place(wrong)} is no integer")
            numbers = list(map(int, numbers))
        if numbers and not (low <= min(numbers) and max(numbers) <= high):
            wrong = next(i for i, n in enumerate(numbers) if not low <= n <= high)
            raise NestedListError(f"{_json(numbers[wrong])} at {self.place(wrong)} is not in {low} to {high}")
        return np.array(numbers, dtype).reshape(self.shape)

    def _place(self, position: int, shape: Any) -> list[int]:
        return [int(i) for i in np.unravel_index(position, shape)] if len(shape) else []


def _json(value: Any) -> str:
    """Format a value in JSON notation, shortened."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return "text"
    if isinstance(value, dict):
        return "an object"
    return str(value) if not isinstance(value, int) or value.bit_length() < 200 else f"a number of {value.bit_length()} bits"
