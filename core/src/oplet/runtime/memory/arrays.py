"""A run of the plan whose shapes are known together, and the memory of its tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from oplet.ops.context import Node
from oplet.ops.tensor import Array, Tensor
from oplet.runtime.memory import arena_planner as memory
from oplet.schema.enums import TensorType

__all__ = ["Request", "Segment", "new_array"]

#: Bytes; what is smaller gains less from where it lies than it takes to see to that.
_SMALL = 16384

#: A tensor that wants memory in the arena, and for how long.
Request = tuple[Tensor, memory.Lifetime]


class Segment:
    """A run of the plan.

    Attributes:
        end: the position in the plan behind its last node.
        nodes: the nodes that run (folded ones do not).
        thunks: their bound forms.
        dynamic: the tensors whose shapes the last node decides.
        block: the arena.
        requests: the tensors that lie in it.
        offsets: where they lie.
    """

    __slots__ = ("block", "dynamic", "end", "nodes", "offsets", "requests", "thunks")

    def __init__(self, end: int, nodes: list[Node], dynamic: list[Tensor]) -> None:
        self.end = end
        self.nodes = nodes
        self.dynamic = dynamic
        self.thunks: list[Callable[[], None]] = []
        self.block: NDArray[np.uint8] | None = None
        self.requests: Sequence[Request] = ()
        self.offsets: Sequence[int] = ()

    def place(self, requests: list[Request], offsets: list[int], nbytes: int) -> None:
        """Make the arena, whatever is in it, and give each tensor its part of it.

        Args:
            offsets: where each tensor lies.
            nbytes: of the arena.

        Raises:
            MemoryError: there is not that much.
        """
        block = self.block = memory.allocate(nbytes, zeroed=False)
        self.requests, self.offsets = requests, offsets
        for (tensor, _), offset in zip(requests, offsets):
            tensor.provide(np.ndarray(tensor.shape, tensor.dtype, block, offset))

    def holds(self, tensor: Tensor) -> bool | None:
        """Whether the tensor's memory was not given to another after it was read last; None if it is not in here."""
        for (mine, life), begin in zip(self.requests, self.offsets):
            if mine is tensor:
                end = begin + life.nbytes
                # One that begins where this one ends was written in its place.
                return not any(
                    other is not tensor and its.first >= life.last and offset < end and offset + its.nbytes > begin
                    for (other, its), offset in zip(self.requests, self.offsets)
                )
        return None


def new_array(tensor: Tensor, *, zeroed: bool = True) -> Array:
    """Memory of its own for a tensor.

    Args:
        zeroed: as `memory.allocate` takes it.

    Raises:
        MemoryError: there is not that much; ValueError: no address space holds it.
    """
    shape, dtype = tensor.shape, tensor.dtype
    if dtype.hasobject:
        return np.full(shape, b"" if tensor.type is TensorType.STRING else None, object)
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes < _SMALL:
        small: Array = np.zeros(shape, dtype) if zeroed else np.empty(shape, dtype)
        return small
    array: Array = np.ndarray(shape, dtype, memory.allocate(nbytes, zeroed=zeroed))
    return array
