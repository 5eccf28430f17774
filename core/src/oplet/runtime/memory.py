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
    count = len(lifetimes)
    offsets = [0] * count
    sizes = [-(-life.nbytes // ALIGNMENT) * ALIGNMENT for life in lifetimes]
    order = sorted(range(count), key=lambda i: (-sizes[i], lifetimes[i].first))
    # Columns of what is placed so far, in the order of placing: first, last, begin, end.
    placed = np.zeros((4, count), np.int64)
    total = 0
    for done, i in enumerate(order):
        _, first, last = lifetimes[i]
        size = sizes[i]
        if not size:
            continue
        rivals = placed[2:, :done][:, (placed[0, :done] <= last) & (placed[1, :done] >= first)]
        offset = 0
        for begin, end in sorted(map(tuple, rivals.T.tolist())):
            if begin - offset >= size:
                break
            offset = max(offset, end)
        offsets[i] = offset
        placed[:, done] = first, last, offset, offset + size
        total = max(total, offset + size)
    return Placement(offsets, total)


def allocate(nbytes: int) -> NDArray[Any]:
    """A block of zeroed bytes whose address is a multiple of `ALIGNMENT`."""
    block = np.zeros(nbytes + ALIGNMENT, np.uint8)
    start = -block.ctypes.data % ALIGNMENT
    return block[start : start + nbytes]
