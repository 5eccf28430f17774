"""Sliding tensors in an arena: it stays as valid and as small as it was, and halves come to lie in halves."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from oplet.runtime.memory.arena_planner import ALIGNMENT, Lifetime, plan_arena
from oplet.runtime.memory.cache_locality import with_locality

KIB = 1024
lifetimes = st.lists(
    st.builds(
        lambda n, a, b: Lifetime(n, min(a, b), max(a, b)), st.integers(0, 200 * KIB), st.integers(0, 40), st.integers(0, 40)
    ),
    min_size=1,
    max_size=24,
)


@given(lifetimes)
def test_tensors_alive_together_still_share_no_bytes_and_the_arena_is_as_large_as_before(requests: list[Lifetime]) -> None:
    before = plan_arena(requests)
    offsets, total = with_locality(requests, before)
    assert total == before.nbytes
    for (a, at), (b, bt) in itertools.combinations(zip(requests, offsets), 2):
        if a.first <= b.last and b.first <= a.last and a.nbytes and b.nbytes:
            assert at + a.nbytes <= bt or bt + b.nbytes <= at
    for request, offset in zip(requests, offsets):
        assert offset % ALIGNMENT == 0
        assert 0 <= offset <= max(total - request.nbytes, 0) or not request.nbytes


def test_a_small_tensor_comes_to_lie_around_the_middle_of_the_large_one_before_it() -> None:
    large, small = Lifetime(400 * KIB, 0, 1), Lifetime(100 * KIB, 2, 3)
    assert with_locality([large, small], plan_arena([large, small])).offsets == [0, 150 * KIB]


def test_the_neighbours_nearest_in_time_decide() -> None:
    requests = [Lifetime(800 * KIB, 0, 0), Lifetime(400 * KIB, 4, 5), Lifetime(100 * KIB, 6, 7)]
    placement = plan_arena(requests)._replace(offsets=[0, 0, 0])
    offsets = with_locality(requests, placement).offsets
    assert offsets[2] - offsets[1] == 150 * KIB


def test_a_plan_of_very_many_tensors_stays_as_it_is() -> None:
    requests = [Lifetime(400 * KIB, 0, 1), Lifetime(100 * KIB, 2, 3)] + [Lifetime(64, 0, 3)] * 5000
    placement = plan_arena(requests)
    assert with_locality(requests, placement) is placement
