"""Memory for the tensors of one segment: what they ask for while its nodes prepare, and where they lie afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from oplet.ops.context import Node
from oplet.ops.tensor import Allocation, Array, Tensor
from oplet.runtime.execution.kernel_context import KernelContext
from oplet.runtime.memory import arena_planner as memory
from oplet.runtime.memory.arrays import Request, Segment
from oplet.runtime.memory.cache_locality import slide

__all__ = ["Placing", "provide"]

_ARENA = Allocation.ARENA


def provide(context: KernelContext, tensor: Tensor) -> None:
    """See to the memory of a tensor that does not lie in an arena."""
    if tensor.allocation is Allocation.DYNAMIC or tensor.is_constant:
        return
    if (
        not tensor.has_data
        or (tensor.data.shape, tensor.data.dtype) != (tensor.shape, tensor.dtype)
        or tensor.allocation is Allocation.ARENA
    ):
        tensor.provide(context.new_array(tensor))


class Placing:
    """What the tensors of a segment ask for.

    Args:
        context: the subgraph's.
        last_use: the position in the plan at which each tensor is read last, by index.
        end: the position behind the plan.
    """

    def __init__(self, context: KernelContext, last_use: Mapping[int, int], end: int) -> None:
        self._context = context
        self._keeps_all = context.session.preserve_all_tensors
        self._last_use = last_use
        self._end = end
        self._requests: list[Request] = []
        self._lives: dict[Tensor, int] = {}  # what nodes write, and where it is read last
        self._in_place: dict[Tensor, Tensor] = {}  # outputs, and the inputs in whose memory they lie

    def add_input(self, tensor: Tensor) -> None:
        """Ask for memory for what the caller feeds."""
        self._request(tensor, 0, self._end)

    def add_node(self, node: Node, position: int) -> None:
        """Ask for memory for what a node writes; it was prepared.

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
        """Ask for arena memory if the tensor lives there, or see to the memory that it has elsewhere; whether it lives there."""
        dtype = tensor.dtype
        if tensor.allocation is _ARENA and not dtype.hasobject and (nbytes := prod(tensor.shape) * dtype.itemsize):
            if self._keeps_all:
                first, last = 0, self._end
            self._requests.append((tensor, memory.Lifetime(nbytes, first, last)))
            return True
        provide(self._context, tensor)
        return False

    def place(self, segment: Segment, offered: Mapping[Tensor, Array]) -> None:
        """Plan the arena and give the tensors their memory.

        Args:
            segment: whose arena it is.
            offered: memory that kernels offer for tensors; it is taken where it fits.

        Raises:
            LimitError: it is more than is allowed, or than there is.
        """
        requests = self._requests
        if offered:
            requests = [request for request in requests if not self._take(*request, offered)]
        if not requests:
            return
        session = self._context.session
        largest = max(requests, key=lambda request: request[1].nbytes)[0]
        session.memory.check_tensor(largest)
        numbers: dict[Tensor, int] = {}
        lifetimes: list[memory.Lifetime] = []
        for tensor, life in requests:
            session.memory.give_back(tensor)
            replaced = self._in_place.get(tensor)
            if replaced in numbers:  # and not in memory that was offered
                number = numbers[tensor] = numbers[replaced]
                lifetimes[number] = memory.Lifetime(life.nbytes, lifetimes[number].first, life.last)
            else:
                numbers[tensor] = len(lifetimes)
                lifetimes.append(life)
        placement = memory.plan(lifetimes)
        if self._context.num_threads > 1:
            placement = slide(lifetimes, placement)
        arenas = sum(subgraph.arena_bytes for subgraph in session.subgraphs)
        session.memory.check_arena(arenas + placement.nbytes, largest)
        try:
            segment.place(requests, [placement.offsets[numbers[tensor]] for tensor, _ in requests], placement.nbytes)
        except MemoryError:
            raise self._context.too_much(placement.nbytes, largest) from None
        for tensor, life in requests:
            if life.last == self._end:  # the caller may read it before a node has written it
                tensor.data.fill(0)

    def _take(self, tensor: Tensor, life: memory.Lifetime, offered: Mapping[Tensor, Array]) -> bool:
        """Give a tensor the memory that a kernel offers for it, if one does; whether it has it."""
        array = offered.get(tensor)
        if array is None or (array.shape, array.dtype) != (tensor.shape, tensor.dtype):  # given another shape since
            return False
        self._context.session.memory.give_back(tensor)
        tensor.provide(array)
        if life.last == self._end:
            array.fill(0)
        return True
