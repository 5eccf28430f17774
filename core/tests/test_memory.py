"""The arena planner: what is alive together never overlaps, and nothing is wasted that need not be."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from oplet.runtime.memory import ALIGNMENT, Lifetime, allocate, plan

lifetimes = st.lists(
    st.builds(lambda n, a, b: Lifetime(n, min(a, b), max(a, b)), st.integers(0, 5000), st.integers(0, 12), st.integers(0, 12)),
    max_size=24,
)


@given(lifetimes)
def test_tensors_alive_together_never_share_bytes(requests: list[Lifetime]) -> None:
    offsets, total = plan(requests)
    for (a, at), (b, bt) in itertools.combinations(zip(requests, offsets), 2):
        if a.first <= b.last and b.first <= a.last and a.nbytes and b.nbytes:
            assert at + a.nbytes <= bt or bt + b.nbytes <= at
    for request, offset in zip(requests, offsets):
        assert offset % ALIGNMENT == 0
        assert offset + request.nbytes <= total or not request.nbytes


@given(lifetimes)
def test_the_arena_is_never_larger_than_all_tensors_side_by_side(requests: list[Lifetime]) -> None:
    assert plan(requests).nbytes <= sum(-(-r.nbytes // ALIGNMENT) * ALIGNMENT for r in requests)


def test_a_chain_of_equal_tensors_needs_two_places() -> None:
    chain = [Lifetime(640, i, i + 1) for i in range(100)]
    assert plan(chain).nbytes == 2 * 640


def test_memory_of_a_tensor_that_ended_is_used_again() -> None:
    assert plan([Lifetime(64, 0, 0), Lifetime(64, 1, 1), Lifetime(64, 2, 2)]).nbytes == 64


def test_blocks_are_aligned_and_zeroed() -> None:
    for nbytes in (0, 1, 63, 64, 1000):
        block = allocate(nbytes)
        assert block.nbytes == nbytes
        assert not nbytes or block.ctypes.data % ALIGNMENT == 0
        assert not block.any()
