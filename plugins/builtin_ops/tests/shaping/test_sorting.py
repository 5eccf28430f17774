"""Sorting by a comparator of the model's, which may contradict itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oplet_builtin_ops.control.sorting import sorted_order


class Comparator:
    """Stands for a body that compares many pairs at once."""

    lanes = 64

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def start(self) -> None:
        """Nothing is to be made ready."""

    def __call__(self, first: Any, second: Any) -> list[Any]:
        return [self.answer(first, second)]


@pytest.mark.parametrize(
    "answer",
    [
        lambda a, b: np.ones(a.shape, bool),
        lambda a, b: a >= b,
        lambda a, b: a != b,
        lambda a, b: np.arange(a.size) % 2 == 0,
        lambda a, b: (a * 7 + b * 3) % 5 < 2,
    ],
    ids=["always", "not below", "unlike", "by turns", "by chance"],
)
@pytest.mark.parametrize("length", [2, 3, 7, 8, 33])
def test_a_comparator_that_contradicts_itself_leads_to_places_that_there_are(answer: Any, length: int) -> None:
    values = np.random.default_rng(0).integers(0, 4, (3, length))
    for _ in range(5):
        np.full((3, length), -(2**40))  # what freed memory may hold
        order = sorted_order(Comparator(answer), [values])  # type: ignore[arg-type]
        assert order.shape == values.shape
        assert order.min() >= 0
        assert order.max() < length
