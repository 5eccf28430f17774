"""The layout of sequences in the tensors of recurrent ops: time first or batch first."""

from __future__ import annotations

from oplet import Tensor, ensure
from oplet.kernels.arrays import Array, Shape
from oplet.records import Row

__all__ = ["Layout", "sequence_layout"]


class Layout(Row):
    """Steps and batch size of a sequence tensor, and which of the two comes first.

    Attributes:
        steps: the number of steps.
        batches: the number of sequences.
        time_major: whether time is the first dimension; otherwise it is the second.
    """

    steps: int
    batches: int
    time_major: bool

    @property
    def shape(self) -> Shape:
        """The shape of the sequence tensors' first two dimensions."""
        return (self.steps, self.batches) if self.time_major else (self.batches, self.steps)

    def steps_of(self, values: Array, backward: bool = False) -> Array:
        """Return a view of `values` with time as the first axis, reversed if `backward`."""
        view = values if self.time_major else values.swapaxes(0, 1)
        return view[::-1] if backward else view


def sequence_layout(source: Tensor, time_major: bool) -> Layout:
    """Return the layout of a 3D sequence input."""
    ensure(source.ndim == 3, f"{source} must have 3 dimensions.")
    first, second, _ = source.shape
    return Layout(first, second, True) if time_major else Layout(second, first, False)
