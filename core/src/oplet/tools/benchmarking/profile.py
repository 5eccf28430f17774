"""Summary of a profiler's events, by node and by kind of op.

Examples:
    >>> profiler = Profiler()  # doctest: +SKIP
    >>> interpreter = Interpreter("model.tflite", profiler=profiler)  # doctest: +SKIP
    >>> ...  # allocate, set the inputs, invoke as often as you like  # doctest: +SKIP
    >>> [(op.op, op.share) for op in summarize(profiler.events).ops]  # doctest: +SKIP
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from oplet.runtime.describe.profiler import Event

if TYPE_CHECKING:
    from oplet.runtime.interpreter import Interpreter

__all__ = ["NodeCost", "OpCost", "Place", "Profile", "nested", "node_names", "summarize"]

#: Index of a subgraph, and index of a node in it.
Place = tuple[int, int]


@dataclass(frozen=True)
class NodeCost:
    """Time of one node in an inference, without the nodes of subgraphs that it calls.

    Attributes:
        subgraph: the subgraph's index.
        node: the node's index in it.
        op: the op's name.
        label: the kernel's label; the op's name if it has none.
        name: names of the tensors that it writes.
        start: mean seconds from the start of an inference to the node's first start.
        first: seconds of its first run.
        seconds: mean seconds per inference.
        least: seconds of its shortest run.
        calls: mean number of runs per inference.
        share: its fraction of the time of all nodes.
        cumulative: the sum of its share and the shares of all nodes before it in the list.
    """

    subgraph: int
    node: int
    op: str
    label: str
    name: str
    start: float
    first: float
    seconds: float
    least: float
    calls: float
    share: float
    cumulative: float


@dataclass(frozen=True)
class OpCost:
    """Time of all nodes with the same label in an inference.

    Attributes:
        op: the label.
        nodes: the number of nodes.
        calls: mean number of their runs per inference.
        seconds: mean seconds per inference.
        share: their fraction of the time of all nodes.
        cumulative: the sum of this share and the shares of all kinds before it in the list.
    """

    op: str
    nodes: int
    calls: float
    seconds: float
    share: float
    cumulative: float


@dataclass(frozen=True)
class Profile:
    """Times of nodes.

    Attributes:
        runs: the number of inferences.
        seconds: mean seconds per inference of all nodes together.
        nodes: the nodes in the order in which they run.
        by_time: the same nodes, the costliest first.
        ops: kinds of ops, the costliest first.
    """

    runs: int = 0
    seconds: float = 0
    nodes: list[NodeCost] = field(default_factory=list)
    by_time: list[NodeCost] = field(default_factory=list)
    ops: list[OpCost] = field(default_factory=list)


@dataclass
class _Sum:
    label: str
    op: str
    first: float
    seconds: float = 0
    least: float = float("inf")
    calls: int = 0
    start: float = 0
    starts: int = 0


def summarize(events: Sequence[Event], *, runs: int | None = None, names: Mapping[Place, str] | None = None) -> Profile:
    """Summarize a profiler's events.

    Args:
        events: `Profiler.events`.
        runs: the number of inferences; by default the number of runs of the node that starts first.
        names: names of the nodes, see `node_names`.
    """
    if not events:
        return Profile(runs or 0)
    levels = list(nested(events))
    opening = min((event for event, _, depth in levels if depth == 0), key=lambda event: event.start)
    first_key = (opening.subgraph, opening.node, opening.label)
    begins = [e.start for e, _, depth in levels if depth == 0 and (e.subgraph, e.node, e.label) == first_key]
    runs = runs or len(begins)
    sums: dict[tuple[int, int, str], _Sum] = {}
    seen: dict[tuple[int, int, str], int] = {}
    run = 0
    for event, own, _ in levels:
        while run < len(begins) and event.start >= begins[run]:
            run += 1
        key = (event.subgraph, event.node, event.label)
        total = sums.setdefault(key, _Sum(event.label, event.op, own))
        total.seconds += own
        total.least = min(total.least, own)
        total.calls += 1
        if seen.get(key) != run:  # its first run in this inference
            seen[key] = run
            total.start += event.start - begins[run - 1]
            total.starts += 1
    whole = sum(total.seconds for total in sums.values()) or 1.0
    nodes = sorted(sums.items(), key=lambda item: item[1].start / item[1].starts)
    return Profile(
        runs,
        whole / runs,
        _costs(nodes, whole, runs, names or {}),
        _costs(sorted(nodes, key=lambda item: -item[1].seconds), whole, runs, names or {}),
        _kinds(sums, whole, runs),
    )


def _costs(
    nodes: Sequence[tuple[tuple[int, int, str], _Sum]], whole: float, runs: int, names: Mapping[Place, str]
) -> list[NodeCost]:
    costs, cumulative = [], 0.0
    for (subgraph, node, label), total in nodes:
        share = total.seconds / whole
        cumulative += share
        costs.append(
            NodeCost(
                subgraph,
                node,
                total.op,
                label,
                names.get((subgraph, node), ""),
                total.start / total.starts,
                total.first,
                total.seconds / runs,
                total.least,
                total.calls / runs,
                share,
                cumulative,
            )
        )
    return costs


def _kinds(sums: Mapping[tuple[int, int, str], _Sum], whole: float, runs: int) -> list[OpCost]:
    groups: dict[str, list[_Sum]] = defaultdict(list)
    for total in sums.values():
        groups[total.label].append(total)
    costs, cumulative = [], 0.0
    ranked = sorted(groups.items(), key=lambda item: -sum(total.seconds for total in item[1]))
    for label, group in ranked:
        seconds = sum(total.seconds for total in group)
        cumulative += seconds / whole
        calls = sum(total.calls for total in group)
        costs.append(OpCost(label, len(group), calls / runs, seconds / runs, seconds / whole, cumulative))
    return costs


def nested(events: Sequence[Event]) -> Iterator[tuple[Event, float, int]]:
    """Events in the order of their starts, each with its own seconds (without events inside it) and its nesting depth.

    Events are nested where control flow, or a delegate that profiles its operators, runs nodes inside a node.
    """
    order = sorted(events, key=lambda event: (event.start, -event.seconds))
    inside = [0.0] * len(order)
    depths = []
    open_events: list[int] = []
    for position, event in enumerate(order):
        while open_events and not _holds(order[open_events[-1]], event):
            open_events.pop()
        if open_events:
            inside[open_events[-1]] += event.seconds
        depths.append(len(open_events))
        open_events.append(position)
    for event, children, depth in zip(order, inside, depths):
        yield event, max(event.seconds - children, 0.0), depth


def _holds(outer: Event, inner: Event) -> bool:
    end = outer.start + outer.seconds
    return inner.start < end and inner.start + inner.seconds <= end + 1e-9


def node_names(interpreter: Interpreter) -> dict[Place, str]:
    """Names of the nodes: those of the tensors that they write."""
    return {
        (subgraph.index, node.index): ", ".join(tensor.name or f"tensor {tensor.index}" for tensor in node.outputs)
        for subgraph in interpreter._subgraphs
        for node in subgraph.nodes
    }
