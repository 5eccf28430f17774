"""Tensors at partition boundaries, observed in candidate and baseline while the partitions run as they are.

`experimental_preserve_all_tensors` would keep these tensors too, but it changes the partitions (to one node each).

Near ties: outputs that select among values (indices, sorted rows, boxes) may select another of two nearly equal values.

Such an output then differs by as much as the alternatives are apart, however close the values were. It is accepted if each node, run by itself
on the same values, gives the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
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
    """A tensor that was compared."""

    name: str  #: The name of the output or tensor.
    type: str  #: Its element type.
    shape: tuple[int, ...]  #: Its shape in the last run.
    difference: Difference  #: The difference over all runs.
    subgraph: int = 0
    tensor: int = -1
    written_by: int = -1  #: The number of the partition that writes it, in the order of the plan; -1 if none does.
    read_by: tuple[int, ...] = ()  #: The numbers of the partitions that read it.
    note: str = ""  #: A remark, such as why it passes although it exceeds the tolerance; else "".


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


_CHOOSING = frozenset(
    [
        "ARG_MAX",
        "ARG_MIN",
        "TOPK_V2",
        "NON_MAX_SUPPRESSION_V4",
        "NON_MAX_SUPPRESSION_V5",
        "UNIQUE",
        "WHERE",
        "TFLite_Detection_PostProcess",
        "FLOOR",
        "CEIL",
        "ROUND",
        "SIGN",
        "FLOOR_DIV",
        "FLOOR_MOD",
        "BUCKETIZE",
        "HASHTABLE_LOOKUP",
        "IF",
        "WHILE",
        "STABLEHLO_SORT",
        "STABLEHLO_COMPARE",
        "STABLEHLO_WHILE",
        "STABLEHLO_CASE",
        "LSH_PROJECTION",
        "MULTINOMIAL",
    ]
)
_WHOLE = (TensorType.INT32, TensorType.INT64, TensorType.UINT32, TensorType.STRING)
_NOTE = "another choice among nearly equal values: on the same values each node gives the same"


def accept_near_ties(
    outputs: Sequence[ComparedTensor], baseline: Interpreter, details: Mapping[str, Mapping[str, Any]], nodes_agree: bool
) -> list[ComparedTensor]:
    """Return the outputs, with those marked as passed that differ only because two nearly equal values were ranked differently.

    Args:
        details: each output's dictionary of `Interpreter.get_output_details`, by name.
        nodes_agree: whether all nodes or partitions agree when run separately on the same inputs.
    """
    if not nodes_agree:
        return list(outputs)
    chosen = _chosen_tensors(baseline)
    return [
        replace(layer, difference=replace(layer.difference, passed=True), note=_NOTE)
        if not layer.difference.passed
        and not layer.difference.nonfinite_differing
        and not layer.difference.why.startswith("the type")
        and int(details[layer.name]["index"]) in chosen
        else layer
        for layer in outputs
    ]


def _chosen_tensors(baseline: Interpreter) -> set[int]:
    """Return the indices of output tensors, of all subgraphs, that depend on a selection among values.

    A comparison of numbers counts as a selection for boolean and integer tensors that follow from it, but not for floats: a
    SELECT between the branches of a function such as ELU gives nearly equal values on both sides of the threshold.
    """
    found: set[int] = set()
    for subgraph in baseline.subgraphs:
        chosen: set[int] = set()
        compared: set[int] = set()
        for index in subgraph.execution_plan:
            node = subgraph.nodes[index]
            read = {tensor.index for tensor in node.inputs if tensor is not None}
            if node.op_name in _CHOOSING or read & chosen or _makes(_WHOLE, node):
                chosen.update(tensor.index for tensor in node.outputs)
            elif read & compared or _makes((TensorType.BOOL,), node):
                compared.update(tensor.index for tensor in node.outputs if tensor.type in (TensorType.BOOL, *_WHOLE))
        found |= (chosen | compared) & set(subgraph.outputs)
    return found


def _makes(types: Collection[TensorType], node: Node) -> bool:
    """Return whether a node reads a float32 tensor that is not constant, and writes a tensor of one of these types."""
    real = any(tensor is not None and tensor.type is TensorType.FLOAT32 and not tensor.is_constant for tensor in node.inputs)
    return real and any(tensor.type in types for tensor in node.outputs)
