"""The arena planner: lifetimes in, offsets out.

Tensors that are never alive at the same time share memory. One after another they are placed at the lowest offset where they meet
no neighbour in time: larger ones first ("greedy by size", https://arxiv.org/abs/2001.03288, as LiteRT's arena planner), or in
another order where that one takes more than the bytes that are alive together.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

__all__ = ["ALIGNMENT", "ArenaPlan", "Lifetime", "plan_arena"]

#: Bytes; what vector instructions and cache lines like.
ALIGNMENT = 64

#: Positions of the plan that are looked at together.
_STRETCH = 8

#: Other orders are tried where an arena takes more than the least that is possible by more than this part of it.
_SPARE = 1 / 32

#: A request's number, its size, and the first and last position.
_Request = tuple[int, int, int, int]

#: In which order to place requests: the larger first, of equal ones the earlier; in the order of time; those first that take the most
#: for the longest time; the larger first, of equal ones the longer.
_ORDERS: tuple[Callable[[_Request], Any], ...] = (
    lambda request: (-request[1], request[2]),
    lambda request: (request[2], -request[1]),
    lambda request: -request[1] * (request[3] - request[2] + 1),
    lambda request: (-request[1], request[2] - request[3]),
)


class Lifetime(NamedTuple):
    """A request for memory.

    Attributes:
        nbytes: how much.
        first: position in the plan at which it is written first.
        last: position at which it is read last.
    """

    nbytes: int
    first: int
    last: int


class ArenaPlan(NamedTuple):
    """The answer: an offset for each request, and the bytes that they take together."""

    offsets: list[int]
    nbytes: int


def plan_arena(lifetimes: list[Lifetime]) -> ArenaPlan:
    """Place every request; two that are alive at the same position never overlap.

    Args:
        lifetimes: the requests; positions are inclusive on both sides.
    """
    offsets = [0] * len(lifetimes)
    sizes = [-(-life.nbytes // ALIGNMENT) * ALIGNMENT for life in lifetimes]
    begin = min((life.first for life in lifetimes), default=0)
    end = max((life.last for life in lifetimes), default=0)
    base = 0
    others = []
    for i, (_, first, last) in enumerate(lifetimes):
        if first == begin and last == end:  # it shares with nobody
            offsets[i] = base
            base += sizes[i]
        elif sizes[i]:
            others.append((i, sizes[i], first, last))
    if not others:
        return ArenaPlan(offsets, base)
    best: dict[int, int] = {}
    total = sum(request[1] for request in others) + 1
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
    """The offset of each request, placed in this order, and the bytes that they take together; None from `limit` bytes on."""
    offsets: dict[int, int] = {}
    total = 0
    near: Sequence[tuple[int, int, int, int]]
    # What is placed so far, by stretches of the plan that it is alive in, so that only neighbours in time are looked at.
    placed: dict[int, list[tuple[int, int, int, int]]] = {}
    for i, size, first, last in requests:
        start, stop = first // _STRETCH, last // _STRETCH + 1
        if stop - start == 1:
            near = placed.get(start, ())
        else:
            near = sorted({rival for stretch in range(start, stop) for rival in placed.get(stretch, ())})
        offset = 0
        for low, high, begin, end in near:
            if begin <= last and end >= first and high > offset:
                if low - offset >= size:
                    break
                offset = high
        offsets[i] = offset
        top = offset + size
        if top > total:
            total = top
            if total >= limit:
                return None
        for stretch in range(start, stop):
            if stretch in placed:
                insort(placed[stretch], (offset, top, first, last))
            else:
                placed[stretch] = [(offset, top, first, last)]
    return offsets, total


def _most_alive(requests: Sequence[_Request]) -> int:
    """The most bytes that are alive at one position: no arena is smaller."""
    changes: dict[int, int] = {}
    for _, size, first, last in requests:
        changes[first] = changes.get(first, 0) + size
        changes[last + 1] = changes.get(last + 1, 0) - size
    return max(accumulate(changes[position] for position in sorted(changes)))
