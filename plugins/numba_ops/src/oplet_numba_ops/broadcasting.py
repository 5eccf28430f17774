"""Broadcasting patterns of binary elementwise ops: how the smaller operand repeats, where up to three nested loops suffice."""

from __future__ import annotations

from functools import lru_cache
from itertools import groupby
from math import prod
from typing import NamedTuple

from oplet import Node, Tensor
from oplet.kernels.arrays import Shape

__all__ = ["Operands", "Repetition", "operands", "repetition"]


class Repetition(NamedTuple):
    """A broadcasting pattern: the larger operand as `blocks` x `rows` x `columns`, and the smaller one's strides over them.

    Attributes:
        blocks: the number of blocks.
        rows: the rows of a block.
        columns: the elements of a row.
        advance: the elements of the small operand from one block to the next; 0 if each block reads the same ones.
        per_row: whether each row reads one element of the small operand; otherwise it reads one for each of its own.
    """

    blocks: int
    rows: int
    columns: int
    advance: int
    per_row: bool


#: The operand of the output's shape, the one that may repeat, how it does, and whether they were exchanged.
Operands = tuple[Tensor, Tensor, Repetition, bool]


@lru_cache(maxsize=1024)
def repetition(large: Shape, small: Shape) -> Repetition | None:
    """Return how `small` broadcasts to `large`; None if it takes more than three nested loops."""
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
    """Return a binary node's operands, larger first, if the output has the larger one's shape; None if the compiled loops cannot
    serve it.
    """
    a, b = node.inputs
    output = node.outputs[0]
    if not output.size:
        return None
    for large, small, exchanged in ((a, b, False), (b, a, True)):
        if large.size == output.size and (how := repetition(output.shape, small.shape)) is not None:
            return large, small, how, exchanged
    return None
