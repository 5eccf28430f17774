"""Cache locality: offsets in an arena at which each thread finds its part of a tensor in the cache of its own core.

Two threads that share a kernel process the first and the second half of each tensor. What a thread has written is in its core's
cache; if the other thread's half of a later tensor has the same addresses, it has to be fetched from there. Tensors are therefore
moved, where those alive at the same time leave room, so that their halves overlap the same halves of the tensors before and after
them. This helps more than two threads too, though less.
"""

from __future__ import annotations

from collections.abc import Sequence

from oplet.runtime.memory.arena_planner import ALIGNMENT, ArenaPlan, Lifetime

__all__ = ["with_locality"]

#: Bytes below which kernels do not divide a tensor between threads.
_SMALL = 16384
#: The number of positions before and after a tensor's lifetime in which other tensors count.
_WINDOW = 16
#: The most other tensors, those nearest in time, that a tensor's halves are compared with.
_MOST = 16
#: Plans of more requests stay as they are, since the time grows with the square of those alive together.
_TOO_MANY = 4096


def with_locality(lifetimes: Sequence[Lifetime], plan: ArenaPlan) -> ArenaPlan:
    """Return an arena plan for the same tensors, as large, in which threads find more of their data in their core's cache."""
    if len(lifetimes) > _TOO_MANY:
        return plan
    offsets, total = list(plan.offsets), plan.nbytes
    sizes = [-(-life.nbytes // ALIGNMENT) * ALIGNMENT for life in lifetimes]
    begin, end = (pick(life[place] for life in lifetimes) for pick, place in ((min, 1), (max, 2)))
    # Tensors that are always alive share memory with none.
    large = [i for i, life in enumerate(lifetimes) if sizes[i] >= _SMALL and (life.first, life.last) != (begin, end)]
    large.sort(key=lambda i: -sizes[i])
    near = _near(lifetimes, large)
    for i in large:
        size, mine, (_, first, last) = sizes[i], offsets[i], lifetimes[i]
        low, high = 0, total
        others = []
        for j in near[i]:
            start, stop = offsets[j], offsets[j] + sizes[j]
            gap = max(lifetimes[j].first - last, first - lifetimes[j].last)
            if gap <= 0:  # alive together
                low, high = (max(low, stop), high) if start < mine else (low, min(high, start))
            elif stop - start >= _SMALL:
                others.append((1 / gap**2, start, stop))
        if high - low == size:
            continue
        others = sorted((other for other in others if other[1] < high and other[2] > low), reverse=True)[:_MOST]
        choices = {min(max((start + stop - size) // 2 // ALIGNMENT * ALIGNMENT, low), high - size) for _, start, stop in others}
        offsets[i] = min((_cost(choice, size, others), choice) for choice in {mine, *choices})[1]
    return ArenaPlan(offsets, total)


def _near(lifetimes: Sequence[Lifetime], chosen: Sequence[int]) -> dict[int, list[int]]:
    """Find for each chosen request the others whose lifetimes overlap it or are within `_WINDOW` positions."""
    alive: dict[int, list[int]] = {}
    for i, (nbytes, first, last) in enumerate(lifetimes):
        if nbytes:
            for stretch in range(first // _WINDOW, last // _WINDOW + 1):
                alive.setdefault(stretch, []).append(i)
    near = {}
    for i in chosen:
        stretches = range(lifetimes[i].first // _WINDOW - 1, lifetimes[i].last // _WINDOW + 2)
        near[i] = sorted({j for stretch in stretches for j in alive.get(stretch, ()) if j != i})
    return near


def _cost(offset: int, size: int, others: Sequence[tuple[float, int, int]]) -> float:
    """Return the bytes of each half that overlap the opposite half of other tensors, weighted by nearness in time."""
    middle, end = offset + size // 2, offset + size
    cost = 0.0
    for weight, start, stop in others:
        half = (start + stop) // 2
        first = min(middle, stop) - max(offset, half)
        second = min(end, half) - max(middle, start)
        cost += weight * (max(first, 0) + max(second, 0))
    return cost
