"""Comparison of two interpreters of one model, node by node, by means of profilers that copy what each node has written.

A `TensorRecorder` records the first interpreter. A `NodeComparer` compares each node of the second one with the record, and then
overwrites the node's outputs with the recorded values, so that errors do not accumulate: each difference is one node's own, or that
of one partition. Values are copied right after their node has run, before its memory is used for other tensors.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet import Interpreter, Node, Profiler, Tensor
from oplet.schema.enums import TensorType
from oplet.toolkit import Event, Subgraph, SubgraphRunner, ensure_readable, quantization_details
from oplet_tools.tuning.differences import Difference, difference
from oplet_tools.tuning.tolerances import Tolerance

__all__ = ["Choose", "NodeComparer", "NodeDifference", "Place", "TensorRecorder", "Values", "scale_and_zero_point"]

Array = NDArray[Any]
#: A tensor, by its subgraph's index and its own.
Place = tuple[int, int]
#: The values that were written into each tensor, in order.
Values = dict[Place, deque[Array]]
#: The tolerance for a dtype, given whether the tensor is quantized.
Choose = Callable[[np.dtype[Any], bool], Tolerance]

#: Types of handles, whose values only their own interpreter understands.
_NO_VALUES = (TensorType.RESOURCE, TensorType.VARIANT)
#: The most bytes that are recorded of one run; what is written after that is not compared.
_MOST_BYTES = 1 << 30


@dataclass(frozen=True)
class NodeDifference:
    """The difference of one tensor that a node wrote."""

    subgraph: int
    node: int
    op: str  #: The operator's name.
    tensor: int
    name: str  #: The tensor's name.
    type: str  #: Its element type, in lower case.
    shape: tuple[int, ...]  #: Its shape in the last run.
    difference: Difference  #: The difference of all runs together.

    def __str__(self) -> str:
        where = f" of subgraph {self.subgraph}" if self.subgraph else ""
        return f"node {self.node} ({self.op}){where}"


class TensorRecorder(Profiler):
    """Records the values that an interpreter's nodes write.

    Attributes:
        values: copies of what nodes wrote since `clear`, in order, by (subgraph, tensor).
        full: whether recording stopped because the copies would take too much memory.
    """

    reads_tensors = True

    def __init__(self) -> None:
        super().__init__()
        self.values: Values = defaultdict(deque)
        self.full = False
        self._bytes = 0
        self._subgraphs: Sequence[Subgraph] = ()

    def attach(self, interpreter: Interpreter) -> None:
        """Begin to record an interpreter, which must have been constructed with this object as its profiler."""
        self._subgraphs = interpreter.subgraphs
        self._contexts = [SubgraphRunner(interpreter, each.index).context for each in interpreter.subgraphs]

    def clear(self) -> None:
        """Discard what was recorded."""
        super().clear()
        self.values = defaultdict(deque)
        self._bytes, self.full = 0, False

    def record(self, event: Event) -> None:
        """Copy the values that the event's node wrote."""
        node = self._subgraphs[event.subgraph].nodes[event.node]
        for tensor in _written(node):
            if tensor.is_constant or not tensor.has_data:
                continue
            stale = tensor.data_is_stale
            ensure_readable(self._contexts[event.subgraph], tensor)
            self._bytes += tensor.data.nbytes
            self.full = self.full or self._bytes > _MOST_BYTES
            if not self.full:
                self.values[event.subgraph, tensor.index].append(np.array(tensor.data))
            tensor.data_is_stale = stale  # the delegate's own kernels go on reading its buffer


class NodeComparer(Profiler):
    """Compares the values that an interpreter's nodes write with recorded ones.

    Attributes:
        values: the recorded values that were not compared yet.
        found: the differences so far, in the order in which the tensors were first written.
        run: the number of the present run.

    Args:
        choose: returns the tolerance for a dtype, and whether the tensor is quantized.
        forced: whether later nodes read the recorded values ("teacher forcing"); otherwise errors accumulate.
        recorded_is_wanted: whether the recorded values are the expected ones; otherwise this interpreter's are.
    """

    reads_tensors = True

    def __init__(self, choose: Choose, *, forced: bool, recorded_is_wanted: bool = False) -> None:
        super().__init__()
        self.values: Values = {}
        self.found: dict[tuple[int, int, int], NodeDifference] = {}
        self.run = 0
        self._tolerances: dict[tuple[int, int, int], Tolerance] = {}
        self._choose = choose
        self._forced = forced
        self._recorded_is_wanted = recorded_is_wanted
        self._judged: Collection[Place] | None = None
        self._subgraphs: Sequence[Subgraph] = ()

    def attach(self, interpreter: Interpreter) -> None:
        """Begin to compare an interpreter, which must have been constructed with this object as its profiler."""
        self._subgraphs = interpreter.subgraphs

    def expect(self, values: Values, judged: Collection[Place] | None, run: int) -> None:
        """Set the recorded values of the next run.

        Args:
            values: the recorded arrays in order, by (subgraph, tensor).
            judged: the tensors to compare, as (subgraph, tensor), None for all; the others are overwritten without a comparison.
            run: the run's number.
        """
        self.values, self._judged, self.run = values, judged, run

    def record(self, event: Event) -> None:
        """Compare the values that the event's node wrote, and overwrite them if `forced`."""
        node = self._subgraphs[event.subgraph].nodes[event.node]
        for tensor in _written(node):
            place = event.subgraph, tensor.index
            recorded = self.values.get(place)
            if not recorded or not tensor.has_data:
                continue
            theirs = recorded.popleft()
            if self._judged is None or place in self._judged:
                self._compare(place, node, tensor, theirs)
            if self._forced and not tensor.is_constant and (theirs.shape, theirs.dtype) == (tensor.data.shape, tensor.data.dtype):
                tensor.data[...] = theirs

    def _compare(self, place: Place, node: Node, tensor: Tensor, theirs: Array) -> None:
        pair = scale_and_zero_point(tensor)
        tolerance = self._choose(theirs.dtype, bool(pair[0]))
        got, wanted = (tensor.data, theirs) if self._recorded_is_wanted else (theirs, tensor.data)
        found = difference(got, wanted, tolerance, pair, run=self.run)
        key = (place[0], node.index, place[1])
        self._tolerances[key] = tolerance
        before = self.found.get(key)
        entry = NodeDifference(
            place[0], node.index, node.op_name, tensor.index, tensor.name, tensor.type.name.lower(), tensor.shape, found
        )
        self.found[key] = entry if before is None else replace(entry, difference=before.difference + found)

    def judged(self) -> list[NodeDifference]:
        """Return the differences; a tensor's difference fails also if all its runs together show a gain error."""
        return [
            replace(entry, difference=entry.difference.judged_as_whole(self._tolerances[key]))
            for key, entry in self.found.items()
        ]


def scale_and_zero_point(tensor: Tensor) -> tuple[float, int]:
    """Return a tensor's quantization scale and zero point; (0, 0) if it has none, or several."""
    scale, zero_point = quantization_details(tensor)["quantization"]
    return float(scale), int(zero_point)


def _written(node: Node) -> list[Tensor]:
    """Return the tensors that a node writes: its outputs, and variables among its inputs, unless a delegate keeps these in its
    own memory.
    """
    kept = () if node.delegate is not None else (t for t in node.inputs if t is not None and t.is_variable)
    tensors = [*node.outputs, *kept]
    return [tensor for tensor in dict.fromkeys(tensors) if tensor.type not in _NO_VALUES]
