"""Bidirectional sequences: where each direction writes its output."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from oplet import Node
from oplet_compiled_ops.library.memory import Array

__all__ = ["output_places"]


def output_places(node: Node, rows: int, forward_size: int, merged: bool) -> Callable[[], Sequence[tuple[Array, int]]]:
    """Return a function that gives, for each direction, its output as a table of rows, and the first column that the direction
    writes.

    Args:
        rows: the number of rows: time steps times batches.
        forward_size: how many numbers of a row the forward direction writes.
        merged: whether both directions write to one output, side by side.
    """

    def places() -> Sequence[tuple[Array, int]]:
        outputs = [output.data.reshape(rows, output.shape[-1]) for output in node.outputs]
        return [(outputs[0], 0), (outputs[0], forward_size) if merged else (outputs[1], 0)]

    return places
