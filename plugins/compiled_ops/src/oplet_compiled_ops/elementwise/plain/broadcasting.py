"""Broadcasting patterns of binary elementwise ops: how the smaller operand repeats, where up to three nested loops suffice."""

from __future__ import annotations

from functools import lru_cache
from itertools import groupby
from math import prod

from oplet import Node, Tensor
from oplet.kernels.arrays import Shape
from oplet.records import Row

__all__ = ["Operands", "Repetition", "operands", "repetition"]


class Repetition(Row):
    """A broadcasting pattern: the larger operand seen as `blocks` x `rows` x `columns`, and how the smaller operand repeats over
    it.
    """

    blocks: int  #: The number of blocks of the larger operand.
    rows: int  #: The rows of a block.
    columns: int  #: The elements of a row.
    #: How many elements of the smaller operand lie between those of one block and of the next; 0 if all blocks read the same.
    advance: int
    #: Whether all elements of a row of the larger operand meet one element of the smaller; otherwise each meets its own.
    per_row: bool


#: The operand of the output's shape, the one that may repeat, how it does, and whether they were exchanged.
Operands = tuple[Tensor, Tensor, Repetition, bool]


@lru_cache(maxsize=1024)
def repetition(large: Shape, small: Shape) -> Repetition | None:
    """Return how an operand of shape `small` broadcasts to shape `large`; None if that takes more than three nested loops."""
    padded = (1,) * (len(large) - len(small)) + small
    pairs = [(m, n > 1) for m, n in zip(large, padded) if m != 1]
    runs = [(held, prod(m for m, _ in group)) for held, group in groupby(pairs, lambda pair: pair[1])]
    if len(runs) > 3 or not runs:
        return None if runs else Repetition(1, 1, 1, 0, False)
    held = [flag for flag, _ in runs]
    sizes = [size for _, size in runs]
    if len(runs) == 1:
        return Repetition(1, 1, sizes[0], 0, not held[0])
    block = sizes[0] if len(runs) == 3 else 1
    rows, columns = sizes[-2:]
    advance = 0 if len(runs) < 3 or not held[0] else columns
    return Repetition(block, rows, columns, advance, not held[-1])


def operands(node: Node) -> Operands | None:
    """Return a binary node's operands: (the one of the output's shape, the other, how that one repeats, whether they were
    exchanged).

    None if neither has the output's size, if the other repeats in a way that three nested loops do not cover, or if the output is
    empty.
    """
    a, b = node.inputs
    output = node.outputs[0]
    if not output.size:
        return None
    for large, small, exchanged in ((a, b, False), (b, a, True)):
        if large.size == output.size and (how := repetition(output.shape, small.shape)) is not None:
            return large, small, how, exchanged
    return None
