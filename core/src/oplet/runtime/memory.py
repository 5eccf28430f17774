"""The arena: lifetimes in, offsets out.

Tensors that are never alive at the same time share memory. Larger ones are placed first, each at the lowest offset
where it meets no neighbour in time ("greedy by size", https://arxiv.org/abs/2001.03288, as LiteRT's arena planner).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["ALIGNMENT", "Lifetime", "Placement", "allocate", "plan"]

#: Bytes; what vector instructions and cache lines like.
ALIGNMENT = 64

#: Positions of the plan that are looked at together.
_STRETCH = 32


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


class Placement(NamedTuple):
    """The answer: an offset for each request, and the bytes that they take together."""

    offsets: list[int]
    nbytes: int


def plan(lifetimes: list[Lifetime]) -> Placement:
    """Place every request; two that are alive at the same position never overlap.

    Args:
        lifetimes: the requests; positions are inclusive on both sides.
    """
    offsets = [0] * len(lifetimes)
    sizes = [-(-life.nbytes // ALIGNMENT) * ALIGNMENT for life in lifetimes]
    begin = min((life.first for life in lifetimes), default=0)
    end = max((life.last for life in lifetimes), default=0)
    total = 0
    others = []
    for i, (_, first, last) in enumerate(lifetimes):
        if first == begin and last == end:  # it shares with nobody
            offsets[i] = total
            total += sizes[i]
        elif sizes[i]:
            others.append(i)
    base = total
    # What is placed so far, by stretches of the plan that it is alive in, so that only neighbours in time are looked at.
    placed: dict[int, list[tuple[int, int, int, int]]] = {}
    for i in sorted(others, key=lambda i: (-sizes[i], lifetimes[i].first)):
        _, first, last = lifetimes[i]
        stretches = range(first // _STRETCH, last // _STRETCH + 1)
        rivals = {r for stretch in stretches for r in placed.get(stretch, ()) if r[2] <= last and r[3] >= first}
        offset = base
        for low, high, *_ in sorted(rivals):
            if low - offset >= sizes[i]:
                break
            offset = max(offset, high)
        offsets[i] = offset
        total = max(total, offset + sizes[i])
        for stretch in stretches:
            placed.setdefault(stretch, []).append((offset, offset + sizes[i], first, last))
    return Placement(offsets, total)


def allocate(nbytes: int) -> NDArray[Any]:
    """A block of zeroed bytes whose address is a multiple of `ALIGNMENT`."""
    block = np.zeros(nbytes + ALIGNMENT, np.uint8)
    start = -block.ctypes.data % ALIGNMENT
    return block[start : start + nbytes]
