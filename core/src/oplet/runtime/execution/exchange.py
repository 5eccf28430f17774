"""The exchange of memory: inputs and outputs of a subgraph lie in arrays of the application, so that a run copies neither."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from oplet.model.reachability import called_subgraphs
from oplet.ops.tensor import Allocation, Array, Tensor
from oplet.runtime.execution.binding import bind_node
from oplet.runtime.memory.buffer_handles import with_readable_inputs

if TYPE_CHECKING:
    from oplet.ops.context import Node
    from oplet.runtime.execution.executor import Executor

__all__ = ["exchange_memory"]


def exchange_memory(executor: Executor, arrays: Mapping[int, Array | None]) -> set[int]:
    """Let tensors of a subgraph lie in these arrays until it is next prepared, and bind the nodes that read or write them anew.

    Args:
        executor: the subgraph's executor.
        arrays: by the index of an input or output, its new memory; None for the runtime's own, with the value that the tensor has.

    Returns:
        The indices of the tensors that lie where it was asked for. The others have stayed where they were: constants, variables, strings,
        what a delegate's kernel reads or writes, arrays that do not fit, and all tensors of a subgraph that is not prepared, that other
        subgraphs call, or in which a shape depends on values.

    Raises:
        PrepareError: a kernel cannot be bound to the arrays; the subgraph has to be prepared again.
    """
    subgraph = executor.subgraph
    if not _is_static(executor):
        return set()
    delegated = {
        tensor for index in subgraph.execution_plan if (node := subgraph.nodes[index]).delegate for tensor in _tensors(node)
    }
    movable = {*subgraph.inputs, *subgraph.read}
    found: set[int] = set()
    moved: set[Tensor] = set()
    for index, array in arrays.items():
        tensor = subgraph.tensors[index]
        if index not in movable or tensor.allocation is not Allocation.ARENA or tensor in delegated or not tensor.has_data:
            continue
        new = executor.exchanged.get(tensor, tensor.data) if array is None else array
        if new is not tensor.data:
            if not _fits(new, tensor):
                continue
            if array is None:
                np.copyto(new, tensor.data)
            executor.exchanged.setdefault(tensor, tensor.data)
            tensor.set_memory(new)
            moved.add(tensor)
        found.add(index)
    if moved:
        _bind_anew(executor, moved)
    return found


def _is_static(executor: Executor) -> bool:
    """Return whether the subgraph is prepared as one segment, which only the application runs."""
    subgraph, session = executor.subgraph, executor.session
    if not subgraph.ready or subgraph.is_dynamic or len(subgraph.segments) != 1:
        return False
    return len(session.subgraphs) == 1 or subgraph.index not in called_subgraphs(session.model.lazy_root)


def _fits(array: Array, tensor: Tensor) -> bool:
    flags = array.flags
    same = array.dtype == tensor.dtype and array.shape == tensor.shape and not array.dtype.hasobject
    return same and flags.c_contiguous and flags.writeable and flags.aligned


def _tensors(node: Node) -> Iterator[Tensor]:
    """Yield the tensors that a node, and those that it absorbs, read and write."""
    for each in (node, *node.absorbed):
        for tensor in chain(each.inputs, each.outputs):
            if tensor is not None:
                yield tensor


def _bind_anew(executor: Executor, moved: set[Tensor]) -> None:
    context, subgraph = executor.context, executor.subgraph
    [segment] = subgraph.segments
    executor.session.enter(subgraph)
    try:
        for position, node in enumerate(segment.nodes):
            if not moved.isdisjoint(_tensors(node)):
                segment.thunks[position] = with_readable_inputs(context, node, bind_node(context, node))
    except BaseException:
        subgraph.invalidate()
        raise
    finally:
        executor.session.leave()
    segment.unjoin()
