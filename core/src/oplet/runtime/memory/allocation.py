"""The allocation of a segment's tensors: requests while its nodes prepare, then one plan of the arena, then the memory.

A *request* is a tensor's wish for arena memory and its lifetime; the *plan* is an offset for each request; to *allocate* is to give
tensors their arrays, in the arena or of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from oplet.ops.context import Node
from oplet.ops.tensor import Allocation, Array, Tensor
from oplet.runtime.memory.accounting import MemoryAccount
from oplet.runtime.memory.arena_planner import Lifetime, plan_arena
from oplet.runtime.memory.arrays import aligned_bytes
from oplet.runtime.memory.cache_locality import with_locality
from oplet.runtime.subgraph import Request, Segment, Subgraph

__all__ = ["SegmentAllocation", "allocate_own"]

_ARENA = Allocation.ARENA


def allocate_own(memory: MemoryAccount, tensor: Tensor) -> None:
    """Give a tensor memory of its own, unless what it has fits; constants have theirs, and dynamic tensors get it while running."""
    if tensor.allocation is Allocation.DYNAMIC or tensor.is_constant:
        return
    if (
        not tensor.has_data
        or (tensor.data.shape, tensor.data.dtype) != (tensor.shape, tensor.dtype)
        or tensor.allocation is Allocation.ARENA
    ):
        tensor.set_memory(memory.new_array(tensor))


class SegmentAllocation:
    """The requests of a segment's tensors, and then their memory.

    Args:
        subgraph: the segment's, with its last uses.
        memory: the account of the model.
        preserve_all: whether no tensor may take another one's memory.
    """

    def __init__(self, subgraph: Subgraph, memory: MemoryAccount, *, preserve_all: bool) -> None:
        self._memory = memory
        self._keeps_all = preserve_all
        self._last_use = subgraph.last_use
        self._end = len(subgraph.execution_plan)
        self._requests: list[Request] = []
        self._lives: dict[Tensor, int] = {}  # what nodes write, and where it is read last
        self._in_place: dict[Tensor, Tensor] = {}  # outputs, and the inputs in whose memory they lie

    def request_input(self, tensor: Tensor) -> None:
        """Request memory for what the caller feeds."""
        self._request(tensor, 0, self._end)

    def request_node(self, node: Node, position: int) -> None:
        """Request memory for what a prepared node writes, and for its scratch.

        Args:
            position: of the node in the plan.
        """
        if node.in_place and (replaced := self._replaced(node, position)) is not None:
            self._in_place[node.outputs[0]] = replaced
        for tensor in node.outputs:
            last = self._last_use.get(tensor.index, self._end)  # what nobody reads stays, as in LiteRT
            if self._request(tensor, position, last):
                self._lives[tensor] = last
        for tensor in node.temporaries:
            self._request(tensor, position, position)

    def _replaced(self, node: Node, position: int) -> Tensor | None:
        """The input in whose memory the node's first output is to lie, if there is one."""
        output = node.outputs[0] if node.outputs else None
        if (
            output is None
            or node.delegate is not None
            or self._keeps_all
            or output.allocation is not _ARENA
            or output.is_variable
            or output.delegate is not None
            or output in self._lives
        ):
            return None
        for tensor in node.in_place:
            if self._lives.get(tensor) == position and tensor.delegate is None and tensor.nbytes == output.nbytes:
                return tensor
        return None

    def _request(self, tensor: Tensor, first: int, last: int) -> bool:
        """Request arena memory, or give the tensor memory of its own; True if it goes into the arena."""
        dtype = tensor.dtype
        if tensor.allocation is _ARENA and not dtype.hasobject and (nbytes := prod(tensor.shape) * dtype.itemsize):
            if self._keeps_all:
                first, last = 0, self._end
            self._requests.append((tensor, Lifetime(nbytes, first, last)))
            return True
        allocate_own(self._memory, tensor)
        return False

    def allocate(self, segment: Segment, offered: Mapping[Tensor, Array], others: Sequence[Subgraph], num_threads: int) -> None:
        """Plan the arena and give the tensors their memory.

        Args:
            segment: whose arena it is.
            offered: memory that kernels offer for tensors; it is taken where it fits.
            others: all subgraphs, whose arenas count, too.
            num_threads: threads that are to find their parts of tensors together.

        Raises:
            LimitError: it is more than is allowed, or than there is.
        """
        requests = self._requests
        if offered:
            requests = [request for request in requests if not self._take(*request, offered)]
        if not requests:
            return
        largest = max(requests, key=lambda request: request[1].nbytes)[0]
        memory = self._memory
        memory.check_tensor(largest)
        numbers: dict[Tensor, int] = {}
        lifetimes: list[Lifetime] = []
        for tensor, life in requests:
            memory.give_back(tensor)
            replaced = self._in_place.get(tensor)
            if replaced in numbers:  # and not in memory that was offered
                number = numbers[tensor] = numbers[replaced]
                lifetimes[number] = Lifetime(life.nbytes, lifetimes[number].first, life.last)
            else:
                numbers[tensor] = len(lifetimes)
                lifetimes.append(life)
        plan = plan_arena(lifetimes)
        if num_threads > 1:
            plan = with_locality(lifetimes, plan)
        arenas = sum(subgraph.arena_bytes for subgraph in others)
        memory.check_arena(arenas + plan.nbytes, largest)
        try:
            arena = segment.arena = aligned_bytes(plan.nbytes, zeroed=False)
        except MemoryError:
            raise memory.none_left(plan.nbytes, largest) from None
        segment.requests, segment.offsets = requests, [plan.offsets[numbers[tensor]] for tensor, _ in requests]
        for (tensor, _), offset in zip(requests, segment.offsets):
            tensor.set_memory(np.ndarray(tensor.shape, tensor.dtype, arena, offset))
        for tensor, life in requests:
            if life.last == self._end:  # the caller may read it before a node has written it
                tensor.data.fill(0)

    def _take(self, tensor: Tensor, life: Lifetime, offered: Mapping[Tensor, Array]) -> bool:
        """Give a tensor the memory that a kernel offers for it; True if there is some and it fits."""
        array = offered.get(tensor)
        if array is None or (array.shape, array.dtype) != (tensor.shape, tensor.dtype):  # given another shape since
            return False
        self._memory.give_back(tensor)
        tensor.set_memory(array)
        if life.last == self._end:
            array.fill(0)
        return True
