"""widen_half and narrow_to_half give what numpy gives, for every half there is and for what lies between halves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from tests.budgets import examples

from oplet_builtin_ops.arithmetic.half import narrow_to_half, widen_half

EVERY = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


@pytest.mark.parametrize("halves", [EVERY, EVERY[np.isfinite(EVERY)], EVERY[:100], EVERY[:0]], ids=len)
def test_every_half_is_widened_to_the_bit(halves: np.ndarray) -> None:
    widened = np.empty(halves.size, np.float32)
    with np.errstate(invalid="ignore"):  # as kernels run: ARM's conversion says of signalling NaNs that they are invalid
        widen_half(halves, widened)
        wanted = halves.astype(np.float32)
    assert np.array_equal(widened.view(np.uint32), wanted.view(np.uint32))


def test_blocks_without_infinities_do_not_hide_those_with() -> None:
    halves = np.zeros((2, 1 << 16), np.float16)
    halves[1, 7] = -np.inf
    widened = np.empty(halves.shape, np.float32)
    widen_half(halves, widened)
    assert widened[1, 7] == -np.inf
    assert np.count_nonzero(widened) == 1


def ensure_narrowed_to_the_bit(floats: np.ndarray) -> None:
    narrowed = np.empty(floats.shape, np.float16)
    with np.errstate(all="ignore"):
        narrow_to_half(floats, narrowed)
        wanted = floats.astype(np.float16)
    assert np.array_equal(narrowed.view(np.uint16), wanted.view(np.uint16))


@pytest.mark.parametrize("low", [0, 1, 0x0FFF, 0x1000, 0x1001, 0x1FFF], ids=hex)
def test_floats_at_and_around_halfway_are_narrowed_to_the_bit(low: int) -> None:
    # All signs, exponents and fractions of as many bits as a half's, with these bits behind them: ties and their neighbours.
    floats = ((np.arange(1 << 19, dtype=np.uint32) << 13) | np.uint32(low)).view(np.float32)
    ensure_narrowed_to_the_bit(floats)  # with infinities and NaN
    small = floats[np.abs(floats) < 65520]
    ensure_narrowed_to_the_bit(small)
    ensure_narrowed_to_the_bit(small[: small.size // 3 * 3].reshape(-1, 3)[1:])


@given(arrays.arrays(np.float32, 5, elements=st.floats(width=32)), st.integers(0, 1 << 15))
@settings(max_examples=examples(200), deadline=None)
def test_any_floats_among_many_are_narrowed_to_the_bit(some: np.ndarray, place: int) -> None:
    floats = np.linspace(-3, 3, 1 << 16, dtype=np.float32)
    floats[place : place + 5] = some
    ensure_narrowed_to_the_bit(floats)
