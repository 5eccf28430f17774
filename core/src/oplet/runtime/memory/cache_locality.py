"""Cache locality: an arena plan for several threads, in which their parts of tensors lie together.

Of two threads that share kernels, one reads and writes the first halves of tensors, the other one the second halves. Memory that one
of them wrote lies in the cache of its core, and has to come from there when the other one's half of the next tensor lies in it. So
tensors are moved, within the room that those alive at the same time leave them, to where their halves lie in halves of those before
and after them. With more threads, parts that are not halves lie together more often than before, too.
"""

from __future__ import annotations

from collections.abc import Sequence

from oplet.runtime.memory.arena_planner import ALIGNMENT, ArenaPlan, Lifetime

__all__ = ["with_locality"]

#: Bytes; threads do not share what is smaller.
_SMALL = 16384
#: How many positions of the plan before and after a tensor's life count.
_WINDOW = 16
#: With how many others in the same memory, those nearest in time, halves are compared.
_MOST = 16
#: Plans of more requests are left as they are: of those that are all alive at the same time each is compared with each.
_TOO_MANY = 4096


def with_locality(lifetimes: Sequence[Lifetime], plan: ArenaPlan) -> ArenaPlan:
    """Another plan for the same requests in as many bytes."""
    if len(lifetimes) > _TOO_MANY:
        return plan
    offsets, total = list(plan.offsets), plan.nbytes
    sizes = [-(-life.nbytes // ALIGNMENT) * ALIGNMENT for life in lifetimes]
    begin, end = (pick(life[place] for life in lifetimes) for pick, place in ((min, 1), (max, 2)))
    # What is always alive shares memory with nobody.
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
    """Of each chosen request, all others that are alive with it or not long before or after."""
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
    """The bytes of one half that lie in the other half of another tensor, those of tensors that are near in time above all."""
    middle, end = offset + size // 2, offset + size
    cost = 0.0
    for weight, start, stop in others:
        half = (start + stop) // 2
        first = min(middle, stop) - max(offset, half)
        second = min(end, half) - max(middle, start)
        cost += weight * (max(first, 0) + max(second, 0))
    return cost
