"""The tensors that cross the borders of partitions, on both sides, while the graph runs as it does.

`experimental_preserve_all_tensors`, which would keep them too, cuts other partitions (one node each).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet.ops.context import Node
from oplet.ops.tensor import Tensor
from oplet.runtime.describe.profiler import Event, Profiler
from oplet.runtime.interpreter import Interpreter
from oplet.runtime.memory.buffer_handles import ensure_readable
from oplet.schema.enums import TensorType
from oplet.tuning.differences import Difference
from oplet.tuning.node_comparison import Place

__all__ = ["Both", "Layer", "Observer", "at_a_border", "bordering", "merged"]

Array = NDArray[Any]
#: Handles, which mean something to their own interpreter only.
_NO_VALUES = (TensorType.RESOURCE, TensorType.VARIANT)


@dataclass(frozen=True)
class Layer:
    """A tensor that was compared.

    Attributes:
        name: an output's name, or a tensor's.
        type: its element type.
        shape: its shape in the last run.
        difference: of all runs together.
        subgraph: the subgraph's index.
        tensor: its index.
        written_by: the partition whose kernel writes it, -1 if none does; partitions are counted in the order of the plan.
        read_by: the partitions whose kernels read it.
        note: why it passes although it is further off than the tolerance allows, or what is to be known of it; else "".
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


class Observer(Profiler):
    """Copies the values of tensors as soon as a node that writes or reads them has run.

    Attributes:
        values: the last value of each tensor.
    """

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[Place, Array] = {}

    def watch(self, interpreter: Interpreter, choose: Callable[[Place, Node], bool]) -> None:
        """Copy, of this interpreter, what `choose` picks."""
        self._subgraphs = interpreter._subgraphs
        self._executors = interpreter._executors
        self._choose = choose

    def record(self, event: Event) -> None:
        """Copy what the node of the event wrote and read."""
        subgraph = self._subgraphs[event.subgraph]
        node = subgraph.nodes[event.node]
        for tensor in (*node.inputs, *node.outputs):
            if tensor is None or tensor.is_constant or tensor.type in _NO_VALUES:
                continue
            if node.writes_over(tensor):
                continue  # it was copied when it was written
            place = (event.subgraph, tensor.index)
            if self._choose(place, node):
                stale = tensor.data_is_stale
                ensure_readable(self._executors[event.subgraph].context, tensor)
                self.values[place] = np.array(tensor.data)
                tensor.data_is_stale = stale  # the delegate's own kernels go on reading its buffer

    def value(self, place: Place) -> Array:
        """The value of a tensor; nodes whose result is constant ran before anybody watched."""
        if place in self.values:
            return self.values[place]
        return self._subgraphs[place[0]].tensors[place[1]].data


class Both(Profiler):
    """Tells several profilers of each event."""

    def __init__(self, *profilers: Profiler) -> None:
        super().__init__()
        self._profilers = profilers

    def record(self, event: Event) -> None:
        """Pass the event on."""
        for profiler in self._profilers:
            profiler.record(event)


def at_a_border(place: Place, node: Node) -> bool:
    """Whether a node is a delegate's kernel."""
    return node.delegate is not None


def merged(before: Layer | None, now: Layer) -> Layer:
    """A tensor's differences in two runs as one."""
    return now if before is None else replace(now, difference=before.difference + now.difference)


def bordering(layer: Layer, kernels: Sequence[tuple[int, Node]]) -> Layer:
    """The tensor with the partitions that write and read it."""

    def among(tensors: Collection[Tensor | None]) -> bool:
        return any(tensor is not None and tensor.index == layer.tensor for tensor in tensors)

    here = [(number, kernel) for number, (subgraph, kernel) in enumerate(kernels) if subgraph == layer.subgraph]
    readers = tuple(number for number, kernel in here if among(kernel.inputs))
    return replace(layer, written_by=next((n for n, kernel in here if among(kernel.outputs)), -1), read_by=readers)
