"""The allocation of a segment's tensors: requests while its nodes are prepared, then one plan of the arena, then the memory.

A *request* is a tensor that needs arena memory, with its lifetime; a *plan* has an offset for each request; to *allocate* is to give
tensors their arrays, in the arena or of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from oplet.ops.context import Node
from oplet.ops.tensor import Allocation, Array, Tensor
from oplet.runtime.memory.accounting import MemoryAccount
from oplet.runtime.memory.arena_planner import Lifetime, plan_arena
from oplet.runtime.memory.arrays import aligned_bytes
from oplet.runtime.subgraph import Request, Segment, Subgraph

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["SegmentAllocation", "allocate_own"]

_ARENA = Allocation.ARENA


def allocate_own(memory: MemoryAccount, tensor: Tensor) -> None:
    """Give a tensor an array outside of the arena, unless it has one that fits, is constant, or gets it in `invoke` (dynamic)."""
    if tensor.allocation is Allocation.DYNAMIC or tensor.is_constant:
        return
    if (
        not tensor.has_data
        or (tensor.data.shape, tensor.data.dtype) != (tensor.shape, tensor.dtype)
        or tensor.allocation is Allocation.ARENA
    ):
        tensor.set_memory(memory.new_array(tensor))


class SegmentAllocation:
    """Collects memory requests of the tensors of a segment (part of the plan), and then gives them their memory.

    Args:
        subgraph: the segment's subgraph, whose `last_use` is current.
        memory: the memory account of the model.
        preserve_all: whether every tensor keeps memory of its own.
    """

    def __init__(self, subgraph: Subgraph, memory: MemoryAccount, *, preserve_all: bool) -> None:
        self._memory = memory
        self._preserve_all = preserve_all
        self._last_use = subgraph.last_use
        self._end = len(subgraph.execution_plan)
        self._has_variables = bool(subgraph.variables)
        self._requests: list[Request] = []
        self._last_reads: dict[Tensor, int] = {}  # by node output: the position of its last use
        self._in_place: dict[Tensor, Tensor] = {}  # by output that is written in place: the input whose memory it uses

    def request_input(self, tensor: Tensor) -> None:
        """Request memory for an input of the subgraph."""
        self._request(tensor, 0, self._end)

    def request_node(self, node: Node, position: int) -> None:
        """Request memory for a prepared node's outputs and temporaries, and for variables that it reads.

        Args:
            node: the node.
            position: its position in the plan.
        """
        if node.in_place and (replaced := self._input_to_overwrite(node, position)) is not None:
            self._in_place[node.outputs[0]] = replaced
        for tensor in node.outputs:
            last = self._last_use.get(tensor.index, self._end)  # outputs that nothing reads keep their value, as in LiteRT
            if self._request(tensor, position, last):
                self._last_reads[tensor] = last
        for tensor in node.temporaries:
            self._request(tensor, position, position)
        for variable in node.inputs if self._has_variables else ():
            if variable is not None and variable.is_variable:  # `prepare` may have given it another shape
                allocate_own(self._memory, variable)

    def _input_to_overwrite(self, node: Node, position: int) -> Tensor | None:
        """Return the input in whose memory the node's first output is written in place, None if there is none."""
        output = node.outputs[0] if node.outputs else None
        if (
            output is None
            or node.delegate is not None
            or self._preserve_all
            or output.allocation is not _ARENA
            or output.is_variable
            or output.delegate is not None
            or output in self._last_reads
        ):
            return None
        for tensor in node.in_place:
            if self._last_reads.get(tensor) == position and tensor.delegate is None and tensor.nbytes == output.nbytes:
                return tensor
        return None

    def _request(self, tensor: Tensor, first: int, last: int) -> bool:
        """Request arena memory from position `first` to `last` of the plan, and return True; else allocate the tensor alone."""
        dtype = tensor.dtype
        if tensor.allocation is _ARENA and not dtype.hasobject and (nbytes := prod(tensor.shape) * dtype.itemsize):
            if self._preserve_all:
                first, last = 0, self._end
            self._requests.append((tensor, Lifetime(nbytes, first, last)))
            return True
        allocate_own(self._memory, tensor)
        return False

    def allocate(
        self,
        segment: Segment,
        offered: Mapping[Tensor, Array],
        others: Sequence[Subgraph],
        arena_there: NDArray[np.uint8] | None = None,
    ) -> None:
        """Plan the arena and give the tensors their memory.

        Args:
            segment: the segment.
            offered: arrays that kernels offered for tensors; they are used where they fit.
            others: all subgraphs of the model, whose arenas count for the limit too.
            arena_there: memory laid out by the same plan, to be used with the values in it; None for new memory.

        Raises:
            LimitError: the memory exceeds the limits, or the memory of the machine.
        """
        requests = self._requests
        if offered:
            requests = [request for request in requests if not self._use_offered(*request, offered)]
        if not requests:
            return
        largest = max(requests, key=lambda request: request[1].nbytes)[0]
        memory = self._memory
        memory.check_tensor(largest)
        numbers: dict[Tensor, int] = {}
        lifetimes: list[Lifetime] = []
        for tensor, life in requests:
            memory.release(tensor)
            replaced = self._in_place.get(tensor)
            if replaced in numbers:  # else the input is in memory that a kernel offered
                number = numbers[tensor] = numbers[replaced]
                lifetimes[number] = Lifetime(life.nbytes, lifetimes[number].first, life.last)
            else:
                numbers[tensor] = len(lifetimes)
                lifetimes.append(life)
        plan = plan_arena(lifetimes)
        arenas = sum(subgraph.arena_bytes for subgraph in others)
        memory.check_arena(arenas + plan.nbytes, largest)
        is_there = arena_there is not None and arena_there.nbytes == plan.nbytes
        try:
            arena = segment.arena = arena_there if is_there else aligned_bytes(plan.nbytes, zeroed=False)
        except MemoryError:
            raise memory.out_of_memory(plan.nbytes, largest) from None
        segment.requests, segment.offsets = requests, [plan.offsets[numbers[tensor]] for tensor, _ in requests]
        for (tensor, _), offset in zip(requests, segment.offsets):
            tensor.set_memory(np.ndarray(tensor.shape, tensor.dtype, arena, offset))
        for tensor, life in requests:
            if life.last == self._end and not is_there:  # the caller may read it before the first invoke
                tensor.data.fill(0)

    def _use_offered(self, tensor: Tensor, life: Lifetime, offered: Mapping[Tensor, Array]) -> bool:
        """Give a tensor the array that a kernel offered for it; False if there is none, or it does not fit."""
        array = offered.get(tensor)
        if array is None or (array.shape, array.dtype) != (tensor.shape, tensor.dtype):  # the tensor has another shape since
            return False
        self._memory.release(tensor)
        tensor.set_memory(array)
        if life.last == self._end:
            array.fill(0)
        return True
