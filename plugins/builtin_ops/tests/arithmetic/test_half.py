"""widen_half gives what numpy gives, for every half there is."""

from __future__ import annotations

import numpy as np
import pytest

from oplet_builtin_ops.arithmetic.half import widen_half

EVERY = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


@pytest.mark.parametrize("halves", [EVERY, EVERY[np.isfinite(EVERY)], EVERY[:100], EVERY[:0]], ids=len)
def test_every_half_is_widened_to_the_bit(halves: np.ndarray) -> None:
    widened = np.empty(halves.size, np.float32)
    widen_half(halves, widened)
    assert np.array_equal(widened.view(np.uint32), halves.astype(np.float32).view(np.uint32))


def test_blocks_without_infinities_do_not_hide_those_with() -> None:
    halves = np.zeros((2, 1 << 16), np.float16)
    halves[1, 7] = -np.inf
    widened = np.empty(halves.shape, np.float32)
    widen_half(halves, widened)
    assert widened[1, 7] == -np.inf
    assert np.count_nonzero(widened) == 1
