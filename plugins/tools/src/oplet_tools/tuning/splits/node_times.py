"""Measures the time of each node of a model when a candidate runs it, and of each delegate's kernel."""

from __future__ import annotations

import math
import time
from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

from oplet import Profiler
from oplet.toolkit import Event, profiled
from oplet_tools.tuning.splits.stopwatch import seconds_of, waited

if TYPE_CHECKING:
    from oplet import Interpreter

__all__ = ["NodeTimes", "OwnNode", "measure_node_times"]

#: The most and the fewest profiled runs, and the seconds after which they end.
_RUNS, _LEAST_RUNS, _SECONDS = 20, 3, 0.4


class OwnNode(NamedTuple):
    """A node of the model file, whether a delegate replaces it or not.

    Attributes:
        op: its operator's name.
        sources: the indices of nodes whose results it reads.
        nbytes: the bytes that it writes.
    """

    op: str
    sources: list[int]
    nbytes: int


class NodeTimes(NamedTuple):
    """The seconds of the main subgraph's nodes in one run; for each node the least of several runs.

    Attributes:
        nodes: the seconds of the nodes that kernels run, by index, in the order in which they run.
        partitions: for each delegate's kernel the nodes that it replaces, and its seconds.
        model: all nodes of the model by index, also those computed before the run (constant folding).
    """

    nodes: dict[int, float]
    partitions: list[tuple[tuple[int, ...], float]]
    model: dict[int, OwnNode]

    @property
    def total(self) -> float:
        """The seconds of all nodes and partitions together."""
        return sum(self.nodes.values()) + sum(seconds for _, seconds in self.partitions)

    @property
    def delegated(self) -> set[int]:
        """The nodes that delegates run."""
        return {node for nodes, _ in self.partitions for node in nodes}

    def of(self, wanted: Collection[int], weights: dict[int, float]) -> float:
        """Estimate the seconds of the nodes `wanted`; the time of a partition is divided among its nodes by `weights`."""
        found = sum(seconds for node, seconds in self.nodes.items() if node in wanted)
        for nodes, seconds in self.partitions:
            if mine := [node for node in nodes if node in wanted]:
                whole = sum(weights.get(node, 0.0) for node in nodes)
                found += seconds * (sum(weights.get(node, 0.0) for node in mine) / whole if whole else len(mine) / len(nodes))
        return found


class _LeastTimes(Profiler):
    """Profiler that keeps the shortest time of each node of the main subgraph, without the time in which the thread waited for a
    core.
    """

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[int, float] = {}
        self.start()

    def start(self) -> None:
        """Begin a run: from now on the times of its nodes are counted."""
        self._begun, self._waited = time.perf_counter(), waited()

    def record(self, event: Event) -> None:
        begun, before = self._begun, self._waited
        self._begun, self._waited = time.perf_counter(), waited()
        # The thread may have waited between two nodes as well, so that is part of the time that the delay is taken from.
        seconds = min(event.seconds, time.perf_counter() - begun - (self._waited - before))
        if event.subgraph == 0:
            self.found[event.node] = min(self.found.get(event.node, seconds), seconds)


def measure_node_times(interpreter: Interpreter) -> NodeTimes:
    """Time each node of an interpreter, which is allocated and has its inputs; runs with and without a profiler alternate."""
    profiler = _LeastTimes()
    total = math.inf
    begun = time.monotonic()
    for run in range(_RUNS):
        if run >= _LEAST_RUNS and time.monotonic() - begun > _SECONDS:
            break
        with profiled(interpreter, None):
            interpreter.invoke()  # not timed: the profiled run before went another way through the caches
            total = min(total, seconds_of(interpreter.invoke))
        with profiled(interpreter, profiler):
            profiler.start()
            interpreter.invoke()
    seconds = profiler.found
    # With a profiler each node is a call of its own; without one, neighbours may be joined. And a node's shortest time is one in which
    # nothing came between, of which long partitions and whole runs have fewer than short nodes.
    extra = max(0.0, sum(seconds.values()) - total) / max(1, len(seconds))
    seconds = {node: max(value - extra, value / 8) for node, value in seconds.items()}
    scale = total / (sum(seconds.values()) or total)
    seconds = {node: value * scale for node, value in seconds.items()}
    subgraph = interpreter.subgraphs[0]
    kernels = {index: tuple(node.index for node in params.nodes) for index, params in subgraph.delegated.kernels.items()}
    own = [node for node in subgraph.nodes if node.delegate is None]
    made = {tensor: node.index for node in own for tensor in node.outputs}
    return NodeTimes(
        {node: value for node, value in seconds.items() if node not in kernels},
        [(kernels[node], value) for node, value in seconds.items() if node in kernels],
        {
            node.index: OwnNode(
                node.op_name,
                [made[tensor] for tensor in node.inputs if tensor in made],
                sum(tensor.data.nbytes for tensor in node.outputs if tensor.has_data),
            )
            for node in own
        },
    )
