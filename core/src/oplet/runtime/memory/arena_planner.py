"""The arena planner: lifetimes in, offsets out.

Tensors whose lifetimes do not overlap may share memory. Each gets the lowest offset that is free during its lifetime: larger ones
first ("greedy by size", https://arxiv.org/abs/2001.03288, as in LiteRT's arena planner), or in another order where that takes more
bytes than are alive at one time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

from oplet.records import Row

__all__ = ["ALIGNMENT", "ArenaPlan", "Lifetime", "plan_arena"]

#: The alignment of tensors in bytes: a cache line, and the widest vector registers.
ALIGNMENT = 64

#: The positions of the plan that have one list of placed tensors.
_STRETCH = 8

#: Other orders are tried where an arena is larger than the lower bound by more than this fraction.
_SPARE = 1 / 32

#: A request's number, its size, and the first and last position.
_Request = tuple[int, int, int, int]

#: The orders to place requests in, as sort keys: larger first, then earlier; earlier first, then larger; larger product of size and
#: lifetime first; larger first, then longer lifetime.
_ORDERS: tuple[Callable[[_Request], Any], ...] = (
    lambda request: (-request[1], request[2]),
    lambda request: (request[2], -request[1]),
    lambda request: -request[1] * (request[3] - request[2] + 1),
    lambda request: (-request[1], request[2] - request[3]),
)


class Lifetime(Row):
    """The size and lifetime of a tensor.

    Attributes:
        nbytes: its size in bytes.
        first: the position in the plan of the node that writes it.
        last: the position of the last node that reads it.
    """

    nbytes: int
    first: int
    last: int


class ArenaPlan(Row):
    """An offset in bytes for each request (tensor to be placed), and the size of the arena in bytes."""

    offsets: list[int]
    nbytes: int


def plan_arena(lifetimes: list[Lifetime]) -> ArenaPlan:
    """Plan an arena: requests that are alive at the same position never overlap in memory.

    Args:
        lifetimes: the requests; `first` and `last` are inclusive.
    """
    offsets = [0] * len(lifetimes)
    sizes = [-(-life.nbytes // ALIGNMENT) * ALIGNMENT for life in lifetimes]
    begin = min([life.first for life in lifetimes], default=0)
    end = max([life.last for life in lifetimes], default=0)
    base = 0
    others = []
    for i, (_, first, last) in enumerate(lifetimes):
        if first == begin and last == end:  # always alive: it shares memory with none
            offsets[i] = base
            base += sizes[i]
        elif sizes[i]:
            others.append((i, sizes[i], first, last))
    if not others:
        return ArenaPlan(offsets, base)
    best: dict[int, int] = {}
    total = sum([request[1] for request in others]) + 1
    enough = int(_most_alive(others) * (1 + _SPARE))
    for order in _ORDERS:
        found = _place(sorted(others, key=order), total)
        if found is not None:
            best, total = found
        if total <= enough:
            break
    for i, offset in best.items():
        offsets[i] = base + offset
    return ArenaPlan(offsets, base + total)


def _place(requests: Sequence[_Request], limit: int) -> tuple[dict[int, int], int] | None:
    """Return each request's offset, placed in this order, and the arena's size; None as soon as that reaches `limit` bytes."""
    offsets: dict[int, int] = {}
    total = 0
    near: Sequence[tuple[int, int, int, int]]
    # The placed requests by each stretch of the plan that they are alive in, so that only those are compared that may overlap.
    placed: dict[int, list[tuple[int, int, int, int]]] = {}
    for i, size, first, last in requests:
        start, stop = first // _STRETCH, last // _STRETCH + 1
        if stop - start == 1:
            near = placed.get(start, ())
        else:
            near = sorted({rival for stretch in range(start, stop) for rival in placed.get(stretch, ())})
        offset = 0
        for low, high, begin, end in near:
            if high > offset:
                if low - offset >= size:  # those after it are no lower
                    break
                if begin <= last and end >= first:
                    offset = high
        offsets[i] = offset
        top = offset + size
        if top > total:
            total = top
            if total >= limit:
                return None
        for stretch in range(start, stop):
            rivals = placed.setdefault(stretch, [])
            rivals.append((offset, top, first, last))
            rivals.sort()  # as quick as bisect for what is sorted but for one, and no library to load
    return offsets, total


def _most_alive(requests: Sequence[_Request]) -> int:
    """Return the most bytes that are alive at one position, a lower bound of the arena's size."""
    changes: dict[int, int] = {}
    for _, size, first, last in requests:
        changes[first] = changes.get(first, 0) + size
        changes[last + 1] = changes.get(last + 1, 0) - size
    return max(accumulate([changes[position] for position in sorted(changes)]))
