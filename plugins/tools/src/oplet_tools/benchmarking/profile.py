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
from dataclasses import dataclass, field, replace

from oplet import Work
from oplet.toolkit import Event
from oplet_tools.benchmarking.profiling.node_facts import UNKNOWN, NodeFacts, Place
from oplet_tools.benchmarking.profiling.spread import Spread, ranks

__all__ = ["NodeCost", "OpCost", "Place", "Profile", "nested", "summarize"]

#: A node's place and label: a delegate may report several operators of one node.
_Key = tuple[int, int, str]


@dataclass(frozen=True)
class NodeCost:
    """Time of one node in an inference, without the nodes of subgraphs that it calls.

    Times are those of inferences that nothing disturbed (`oplet_tools.benchmarking.profiling.spread`), except `first` and `mean`.
    """

    subgraph: int
    node: int  #: The node's index in it.
    op: str
    label: str  #: The kernel's label; the op's name if it has none.
    name: str  #: Names of the tensors that it writes.
    inputs: tuple[str, ...]  #: Types and shapes of its inputs: "float32[1,224,224,3]".
    outputs: tuple[str, ...]  #: Types and shapes of its outputs.
    start: float  #: Mean seconds from the start of an inference to the node's first start.
    first: float  #: Seconds of its run in the first inference of all, if that was profiled.
    seconds: float  #: Median seconds per inference.
    low: float  #: The lower quartile of the seconds per inference.
    high: float  #: The upper quartile.
    mad: float  #: The median absolute deviation from the median.
    mean: float  #: Mean seconds per inference, the disturbed ones included.
    least: float  #: Its seconds in the inference in which it took least.
    disturbed: int  #: The number of inferences in which other processes disturbed it, mostly by preemption.
    calls: float  #: Mean number of runs per inference.
    #: 1 for the costliest by the lower quartile, which other processes change least; nodes too near to tell apart share one.
    rank: int
    share: float  #: Its fraction of the time of all nodes.
    cumulative: float  #: The sum of its share and the shares of all nodes before it in the list.
    macs: float | None  #: Multiply-adds per inference; None if unknown.
    operations: float | None  #: Arithmetic operations per inference besides multiply-adds; None if unknown.
    read: float  #: Bytes that it reads per inference.
    written: float  #: Bytes that it writes per inference.
    intensity: float | None  #: Operations per byte, a multiply-add being two; None if unknown.
    gflops: float | None  #: Operations per nanosecond (10^9 per second), a multiply-add being two; None if unknown.

    @property
    def gbytes(self) -> float:
        """Bytes that it reads and writes per nanosecond."""
        return (self.read + self.written) / self.seconds / 1e9 if self.seconds else 0.0


@dataclass(frozen=True)
class OpCost:
    """Time of all nodes with the same kernel label in an inference."""

    op: str  #: The label: the op's name, unless the kernel has a more precise one.
    nodes: int  #: The number of nodes.
    calls: float  #: Mean number of their runs per inference.
    seconds: float  #: The sum of the nodes' medians.
    low: float  #: The sum of their lower quartiles.
    high: float  #: The sum of their upper quartiles.
    share: float  #: Their fraction of the time of all nodes.
    cumulative: float  #: The sum of this share and the shares of all kinds before it in the list.
    macs: float | None = None  #: Multiply-adds per inference of the nodes for which they are known; None if for none.
    gflops: float | None = None  #: Operations per nanosecond of the nodes whose operations are known; None if there are none.


@dataclass(frozen=True)
class Profile:
    """Summary of the times of a model's nodes, in seconds."""

    runs: int = 0  #: The number of inferences.
    seconds: float = 0  #: The sum of the nodes' medians.
    nodes: list[NodeCost] = field(default_factory=list)  #: The nodes in the order in which they run.
    #: The same nodes, the costliest first; those that share a rank in the order in which they run.
    by_time: list[NodeCost] = field(default_factory=list)
    ops: list[OpCost] = field(default_factory=list)  #: Kinds of ops, the costliest first.


@dataclass
class _Samples:
    op: str
    first: float
    seconds: dict[int, float] = field(default_factory=dict)  # by inference
    away: dict[int, float] = field(default_factory=dict)
    calls: int = 0
    start: float = 0


def summarize(
    events: Sequence[Event],
    *,
    runs: int | None = None,
    names: Mapping[Place, str] | None = None,
    facts: Mapping[Place, NodeFacts] | None = None,
    away: Sequence[float] | None = None,
    first: Sequence[Event] = (),
) -> Profile:
    """Summarize a profiler's events.

    Args:
        events: `Profiler.events`.
        runs: the number of inferences; by default the number of runs of the node that starts first.
        names: names of the nodes, by (subgraph, node), used without `facts`.
        facts: names, shapes and work of the nodes, see `oplet_tools.benchmarking.profiling.peaks.facts_of_nodes`.
        away: for each event the seconds that the thread was off the processor; None if that is unknown.
        first: the events of the first inference, which only `NodeCost.first` is taken from.
    """
    if not events:
        return Profile(runs or 0)
    samples, begun = _samples(events, away)
    runs = begun if runs is None else runs
    opening: dict[_Key, float] = {}
    for event, own, _ in nested(first):
        opening.setdefault((event.subgraph, event.node, event.label), own)
    order = sorted(samples, key=lambda key: samples[key].start / len(samples[key].seconds))
    costs = [_cost(key, samples[key], runs, opening.get(key), away is not None, _facts(key, names, facts)) for key in order]
    whole = sum(cost.seconds for cost in costs) or 1.0
    costs = [
        replace(cost, rank=rank, share=cost.seconds / whole) for cost, rank in zip(costs, ranks([cost.low for cost in costs]))
    ]
    by_time = sorted(costs, key=lambda cost: cost.rank)  # stable: those that share a rank stay in order
    return Profile(runs, sum(cost.seconds for cost in costs), _cumulated(costs), _cumulated(by_time), _kinds(costs))


def _facts(key: _Key, names: Mapping[Place, str] | None, facts: Mapping[Place, NodeFacts] | None) -> NodeFacts:
    place = key[:2]
    return (facts or {}).get(place) or UNKNOWN._replace(name=(names or {}).get(place, ""))


def _samples(events: Sequence[Event], away: Sequence[float] | None) -> tuple[dict[_Key, _Samples], int]:
    """Return the seconds of each node in each inference, without nested events, and the number of inferences."""
    absent = dict(zip(map(id, events), away or ()))
    levels = list(nested(events))
    opening = min((event for event, _, depth in levels if depth == 0), key=lambda event: event.start)
    first_key = (opening.subgraph, opening.node, opening.label)
    begins = [e.start for e, _, depth in levels if depth == 0 and (e.subgraph, e.node, e.label) == first_key]
    found: dict[_Key, _Samples] = {}
    run = 0
    for event, own, _ in levels:
        while run < len(begins) and event.start >= begins[run]:
            run += 1
        samples = found.setdefault((event.subgraph, event.node, event.label), _Samples(event.op, own))
        samples.calls += 1
        if run not in samples.seconds:  # its first run in this inference
            samples.start += event.start - begins[run - 1]
        samples.seconds[run] = samples.seconds.get(run, 0.0) + own
        samples.away[run] = samples.away.get(run, 0.0) + absent.get(id(event), 0.0)
    return found, len(begins)


def _cost(key: _Key, samples: _Samples, runs: int, first: float | None, timed: bool, facts: NodeFacts) -> NodeCost:
    subgraph, node, label = key
    spread = Spread.of([*samples.seconds.values()], [*samples.away.values()] if timed else None)
    often = min(len(samples.seconds) / runs, 1.0)  # control flow may leave it out
    calls = samples.calls / runs
    work: Work = facts.work
    flops, seconds = work.flops, spread.median * often
    return NodeCost(
        subgraph=subgraph,
        node=node,
        op=samples.op,
        label=label,
        name=facts.name,
        inputs=facts.inputs,
        outputs=facts.outputs,
        start=samples.start / len(samples.seconds),
        first=samples.first if first is None else first,
        seconds=seconds,
        low=spread.low * often,
        high=spread.high * often,
        mad=spread.mad * often,
        mean=spread.mean * often,
        least=spread.least,
        disturbed=spread.disturbed,
        calls=calls,
        rank=0,
        share=0.0,
        cumulative=0.0,
        macs=None if work.macs is None else work.macs * calls,
        operations=None if work.operations is None else work.operations * calls,
        read=(work.read or 0) * calls,
        written=(work.written or 0) * calls,
        intensity=work.intensity,
        gflops=None if flops is None or not seconds else flops * calls / seconds / 1e9,
    )


def _cumulated(costs: Sequence[NodeCost]) -> list[NodeCost]:
    found, cumulative = [], 0.0
    for cost in costs:
        cumulative += cost.share
        found.append(replace(cost, cumulative=cumulative))
    return found


def _kinds(costs: Sequence[NodeCost]) -> list[OpCost]:
    groups: dict[str, list[NodeCost]] = defaultdict(list)
    for cost in costs:
        groups[cost.label].append(cost)
    lows = [sum(cost.low for cost in group) for group in groups.values()]
    ranked = sorted(zip(ranks(lows), groups.items()), key=lambda item: item[0])
    found, cumulative = [], 0.0
    for _, (label, group) in ranked:
        share = sum(cost.share for cost in group)
        cumulative += share
        counted = [cost for cost in group if cost.gflops is not None]
        busy = sum(cost.seconds for cost in counted)
        macs = [cost.macs for cost in group if cost.macs is not None]
        found.append(
            OpCost(
                op=label,
                nodes=len(group),
                calls=sum(cost.calls for cost in group),
                seconds=sum(cost.seconds for cost in group),
                low=sum(cost.low for cost in group),
                high=sum(cost.high for cost in group),
                share=share,
                cumulative=cumulative,
                macs=sum(macs) if macs else None,
                gflops=sum((cost.gflops or 0) * cost.seconds for cost in counted) / busy if busy else None,
            )
        )
    return found


def nested(events: Sequence[Event]) -> Iterator[tuple[Event, float, int]]:
    """Yield events in the order of their starts, each with its exclusive seconds (without events inside it) and its nesting depth.

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
