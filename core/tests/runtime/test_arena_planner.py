"""The arena planner: what is alive together never overlaps, and nothing is wasted that need not be."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from oplet.runtime.memory.arena_planner import ALIGNMENT, Lifetime, plan_arena
from oplet.runtime.memory.arrays import aligned_bytes

lifetimes = st.lists(
    st.builds(lambda n, a, b: Lifetime(n, min(a, b), max(a, b)), st.integers(0, 5000), st.integers(0, 12), st.integers(0, 12)),
    max_size=24,
)


@given(lifetimes)
def test_tensors_alive_together_never_share_bytes(requests: list[Lifetime]) -> None:
    offsets, total = plan_arena(requests)
    for (a, at), (b, bt) in itertools.combinations(zip(requests, offsets), 2):
        if a.first <= b.last and b.first <= a.last and a.nbytes and b.nbytes:
            assert at + a.nbytes <= bt or bt + b.nbytes <= at
    for request, offset in zip(requests, offsets):
        assert offset % ALIGNMENT == 0
        assert offset + request.nbytes <= total or not request.nbytes


@given(lifetimes)
def test_the_arena_is_never_larger_than_all_tensors_side_by_side(requests: list[Lifetime]) -> None:
    assert plan_arena(requests).nbytes <= sum(-(-r.nbytes // ALIGNMENT) * ALIGNMENT for r in requests)


def rounded(request: Lifetime) -> int:
    return -(-request.nbytes // ALIGNMENT) * ALIGNMENT


def by_size(requests: list[Lifetime]) -> int:
    """The bytes that the larger first, each as low as it goes, take."""
    placed: list[tuple[int, int, Lifetime]] = []
    for request in sorted(filter(rounded, requests), key=lambda request: (-rounded(request), request.first)):
        taken = sorted((low, high) for low, high, other in placed if other.first <= request.last and request.first <= other.last)
        offset = 0
        for low, high in taken:
            if low - offset >= rounded(request):
                break
            offset = max(offset, high)
        placed.append((offset, offset + rounded(request), request))
    return max((high for _, high, _ in placed), default=0)


@given(lifetimes)
def test_the_arena_holds_what_is_alive_together_and_is_never_larger_than_greedy_by_size(requests: list[Lifetime]) -> None:
    alive = [sum(rounded(r) for r in requests if r.first <= position <= r.last) for position in range(13)]
    # Requests that live as long as the plan come first, where they are in nobody's way.
    forever = [r for r in requests if (r.first, r.last) == (min(q.first for q in requests), max(q.last for q in requests))]
    least = sum(map(rounded, forever)) + by_size([r for r in requests if r not in forever])
    assert max(alive) <= plan_arena(requests).nbytes <= least


def test_another_order_is_tried_where_the_larger_first_leaves_gaps() -> None:
    requests = [Lifetime(64 * n, a, b) for n, a, b in [(2, 1, 2), (4, 3, 5), (4, 0, 1), (2, 2, 5)]]
    assert by_size(requests) == 64 * 8
    assert plan_arena(requests).nbytes == 64 * 6


def test_a_chain_of_equal_tensors_needs_two_places() -> None:
    chain = [Lifetime(640, i, i + 1) for i in range(100)]
    assert plan_arena(chain).nbytes == 2 * 640


def test_memory_of_a_tensor_that_ended_is_used_again() -> None:
    assert plan_arena([Lifetime(64, 0, 0), Lifetime(64, 1, 1), Lifetime(64, 2, 2)]).nbytes == 64


def test_blocks_are_aligned_and_zeroed() -> None:
    for nbytes in (0, 1, 63, 64, 1000):
        block = aligned_bytes(nbytes)
        assert block.nbytes == nbytes
        assert not nbytes or block.ctypes.data % ALIGNMENT == 0
        assert not block.any()
        assert aligned_bytes(nbytes, zeroed=False).ctypes.data % ALIGNMENT == 0 or not nbytes
