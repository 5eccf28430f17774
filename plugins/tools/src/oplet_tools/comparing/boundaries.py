"""Tensors at partition boundaries, observed in candidate and baseline while the partitions run as they are.

`experimental_preserve_all_tensors` would keep these tensors too, but it changes the partitions (to one node each).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet import Interpreter, Node, Profiler, Tensor
from oplet.schema.enums import TensorType
from oplet.toolkit import Event, SubgraphRunner, ensure_readable
from oplet_tools.tuning.differences import Difference
from oplet_tools.tuning.node_comparison import Place

__all__ = ["ComparedTensor", "ProfilerGroup", "TensorObserver", "is_delegate_kernel", "merged", "with_partitions"]

Array = NDArray[Any]
#: Types of handles, which cannot be compared across interpreters.
_NO_VALUES = (TensorType.RESOURCE, TensorType.VARIANT)


@dataclass(frozen=True)
class ComparedTensor:
    """A tensor that was compared.

    Attributes:
        name: the name of the output or tensor.
        type: its element type.
        shape: its shape in the last run.
        difference: the difference over all runs.
        subgraph: the subgraph's index.
        tensor: the tensor's index.
        written_by: the number of the partition that writes it, in the order of the plan; -1 if none does.
        read_by: the numbers of the partitions that read it.
        note: a remark, such as why it passes although it exceeds the tolerance; else "".
    """

    name: str
    type: str
    shape: tuple[int, ...]
    difference: Difference
    subgraph: int = 0
    tensor: int = -1
    written_by: int = -1
    read_by: tuple[int, ...] = ()
    note: str = ""


class TensorObserver(Profiler):
    """A profiler that copies the values of tensors right after a node that writes or reads them has run.

    Attributes:
        values: the last value of each tensor, by (subgraph, tensor).
    """

    reads_tensors = True

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[Place, Array] = {}

    def watch(self, interpreter: Interpreter, choose: Callable[[Place, Node], bool]) -> None:
        """Observe an interpreter: copy a tensor's value when `choose((subgraph, tensor), node)` is true."""
        self._subgraphs = interpreter.subgraphs
        self._contexts = [SubgraphRunner(interpreter, each.index).context for each in interpreter.subgraphs]
        self._choose = choose

    def record(self, event: Event) -> None:
        """Copy the tensors that the event's node wrote and read."""
        subgraph = self._subgraphs[event.subgraph]
        node = subgraph.nodes[event.node]
        for tensor in (*node.inputs, *node.outputs):
            if tensor is None or tensor.is_constant or tensor.type in _NO_VALUES:
                continue
            if node.writes_over(tensor):
                continue  # copied when it was written, before this node wrote over it
            place = (event.subgraph, tensor.index)
            if self._choose(place, node):
                stale = tensor.data_is_stale
                ensure_readable(self._contexts[event.subgraph], tensor)
                self.values[place] = np.array(tensor.data)
                tensor.data_is_stale = stale  # the delegate's kernels go on reading the delegate's buffer

    def value(self, place: Place) -> Array:
        """Return the value of the tensor (subgraph, tensor), also if it was computed before the run (constant folding)."""
        if place in self.values:
            return self.values[place]
        return self._subgraphs[place[0]].tensors[place[1]].data


class ProfilerGroup(Profiler):
    """A profiler that passes each event on to several profilers."""

    def __init__(self, *profilers: Profiler) -> None:
        super().__init__()
        self._profilers = profilers
        self.reads_tensors = any(profiler.reads_tensors for profiler in profilers)

    def record(self, event: Event) -> None:
        """Pass the event on to all profilers of the group."""
        for profiler in self._profilers:
            profiler.record(event)


def is_delegate_kernel(place: Place, node: Node) -> bool:
    """Return whether a node is a delegate's kernel; `place` is ignored (a predicate for `TensorObserver.watch`)."""
    return node.delegate is not None


def merged(before: ComparedTensor | None, now: ComparedTensor) -> ComparedTensor:
    """Return `now` with the differences of earlier runs (`before`, None for none) combined into its own."""
    return now if before is None else replace(now, difference=before.difference + now.difference)


def with_partitions(layer: ComparedTensor, kernels: Sequence[tuple[int, Node]]) -> ComparedTensor:
    """Return the tensor with `written_by` and `read_by` set; `kernels` are pairs of subgraph and delegate kernel."""

    def among(tensors: Collection[Tensor | None]) -> bool:
        return any(tensor is not None and tensor.index == layer.tensor for tensor in tensors)

    here = [(number, kernel) for number, (subgraph, kernel) in enumerate(kernels) if subgraph == layer.subgraph]
    readers = tuple(number for number, kernel in here if among(kernel.inputs))
    return replace(layer, written_by=next((n for n, kernel in here if among(kernel.outputs)), -1), read_by=readers)
