"""Proposes candidates with several engines: which nodes each delegate may claim, so that every part runs where it is faster.

The time of a delegate's partition does not tell that of its nodes. So the nodes are cut into segments, in the order in which they run,
and each delegate is given every other segment, and then the rest: from two runs comes the time of every segment, with what it costs to
go over to the delegate and back. Before that, one node of each operator is given to it alone, and operators that it runs too slowly are
left to the kernels. The fastest sequence of engines is a shortest path through these times. They are estimates: what is
proposed here is measured and judged like any other way.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple

from oplet_tools.tuning.candidates import Candidate, runs_text
from oplet_tools.tuning.splits.node_times import NodeTimes

__all__ = ["LEAST_NODES", "split_candidates"]

#: Runs a way with a profiler; None where it cannot run, or where no time is left.
Profile = Callable[[Candidate], "NodeTimes | None"]

#: The most segments, and the fewest nodes that are cut at all.
_SEGMENTS, LEAST_NODES = 12, 4
#: How far a cut may move from its place, to where fewer tensors cross it, as a part of a segment.
_WINDOW = 0.4
#: The bytes that are copied in the time that it takes to hand over a tensor.
_TENSOR = 1 << 14
#: The most delegates that are tried, how many times as long as the fastest way one of them may take, and without its slow operators.
_DELEGATES, _SLOW, _LESS_SLOW = 2, 4.0, 1.5
#: The part of the fastest way's time that a proposal must be estimated to take at most, and the most proposals.
_WORTH, _PROPOSALS = 0.95, 3


class _Engine(NamedTuple):
    """An engine that may run a segment (a range of consecutive nodes): a delegate, or the kernels alone.

    Attributes:
        name: the delegate's name, "" for the kernels.
        seconds: for each segment, the seconds that it takes if other engines run its neighbours.
        saved: for each segment, the seconds that are saved if it runs the segment before too, as no tensors are handed over.
        withheld: the nodes that it never gets; the kernels run them.
    """

    name: str
    seconds: Sequence[float]
    saved: Sequence[float]
    withheld: Collection[int] = ()


class _Plan(NamedTuple):
    """The nodes that each delegate should get, by its name, and the estimated seconds of a run."""

    nodes: Mapping[str, Collection[int]]
    seconds: float


def split_candidates(kernels: Candidate, singles: Mapping[Candidate, float], profile: Profile) -> Iterator[Candidate]:
    """Yield candidates that divide the nodes among several engines, if worth measuring, the least estimated time first.

    Args:
        kernels: the candidate without delegates that is fastest.
        singles: the candidates with these kernels and one delegate that are accurate enough, with their seconds per run.
        profile: runs a candidate and returns the times of its nodes; None if that fails.
    """
    plain = profile(kernels) if singles else None
    if plain is None or len(plain.nodes) < LEAST_NODES:
        return
    wholes: dict[Candidate, NodeTimes] = {}
    fastest = min(plain.total, *singles.values())
    for way in sorted(singles, key=lambda way: singles[way])[:_DELEGATES]:
        whole = profile(way) if singles[way] < _SLOW * fastest else None
        # Of a composite that was inlined for the delegate, the kernels alone have no times of the nodes.
        if whole is not None and whole.delegated <= plain.model.keys():
            wholes[way] = whole
    fastest = min([plain.total, *(whole.total for whole in wholes.values())])
    plans: list[_Plan] = []
    trimmed: list[tuple[Candidate, NodeTimes, Collection[int]]] = []
    for way, whole in wholes.items():
        name = way.delegates[0]
        plans.append(_without_slow_partitions(name, plain, whole))
        slow = _slow_operators(way, plain, whole, profile)
        offered = whole.delegated - slow
        less = profile(replace(way, nodes=(runs_text(offered),))) if slow and offered else None
        if less is not None and less.total < whole.total:
            plans.append(_Plan({name: offered}, less.total))
            trimmed.append((way, less, slow))
        else:
            trimmed.append((way, whole, ()))
    segments = _segments(plain)
    alone = [sum(plain.nodes.get(node, 0.0) for node in segment) for segment in segments]
    engines = [_Engine("", alone, [0.0] * len(segments))]
    for way, whole, withheld in trimmed:
        near = whole.total < _LESS_SLOW * fastest
        engine = _measured(way, segments, plain, whole, withheld, profile) if near else None
        if engine is not None:
            engines.append(engine)
            plans.append(_fastest(segments, [engines[0], engine]))
    if len(engines) > 2:
        plans.append(_fastest(segments, engines))
    claimed = {way.delegates[0]: whole.delegated for way, whole in wholes.items()}
    found: dict[Candidate, float] = {}
    for plan in plans:
        names = tuple(name for name, nodes in plan.nodes.items() if claimed[name].intersection(nodes))
        candidate = replace(kernels, delegates=names, nodes=tuple(runs_text(plan.nodes[name]) for name in names))
        if plan.seconds < _WORTH * fastest and names and not any(claimed[name] <= set(plan.nodes[name]) for name in names):
            found.setdefault(candidate, plan.seconds)
    yield from sorted(found, key=lambda candidate: found[candidate])[:_PROPOSALS]


def _segments(plain: NodeTimes) -> list[list[int]]:
    """Cut the nodes into segments (ranges of consecutive nodes) with similar shares of time and of nodes, where few tensors
    cross.
    """
    order = list(plain.nodes)
    whole = sum(plain.nodes.values()) or 1.0
    shares = list(accumulate(seconds / whole + 1 / len(order) for seconds in plain.nodes.values()))
    crossing = _crossing(order, plain)
    count = min(_SEGMENTS, len(order) // 2)
    size = shares[-1] / count
    cuts = {0}
    for number in range(1, count):
        first, last = (bisect_left(shares, size * (number + offset)) + 1 for offset in (-_WINDOW, _WINDOW))
        middle = bisect_left(shares, size * number) + 1
        places = range(max(first, max(cuts) + 1), min(last, len(order) - 1) + 1)
        if places:
            cuts.add(min(places, key=lambda place: (crossing[place], abs(place - middle))))
    ends = sorted(cuts)
    found = [order[first:end] for first, end in zip(ends, [*ends[1:], len(order)])]
    # What was folded has no time; it goes with what reads it, so that a delegate finds the nodes that widen its weights.
    home = {node: number for number, segment in enumerate(found) for node in segment}
    for node in sorted(plain.model, reverse=True):
        for source in plain.model[node].sources:
            if source not in home:
                home[source] = home.get(node, 0)
                found[home[source]].append(source)
    return found


def _crossing(order: Sequence[int], plain: NodeTimes) -> list[int]:
    """Return, for each position in the order, the bytes that go from nodes before it to nodes after it, plus `_TENSOR` bytes for
    each tensor, which stand for the time of handing it over.
    """
    places = {node: place for place, node in enumerate(order)}
    last: dict[int, int] = {}
    for place, node in enumerate(order):
        last.update((source, place) for source in plain.model[node].sources if source in places)
    changes = [0] * (len(order) + 1)
    for source, end in last.items():
        weight = _TENSOR + plain.model[source].nbytes
        changes[places[source] + 1] += weight
        changes[end + 1] -= weight
    return list(accumulate(changes))


def _without_slow_partitions(name: str, plain: NodeTimes, whole: NodeTimes) -> _Plan:
    """Plan to give a delegate only partitions that it runs faster (times in `whole`) than the kernels (times in `plain`)."""
    kept: list[int] = []
    total = whole.total
    for nodes, seconds in whole.partitions:
        alone = sum(plain.nodes.get(node, 0.0) for node in nodes)
        if seconds < alone:
            kept += nodes
        else:
            total += alone - seconds
    return _Plan({name: kept}, total)


def _slow_operators(way: Candidate, plain: NodeTimes, whole: NodeTimes, profile: Profile) -> set[int]:
    """Find the nodes of operators that the delegate runs so slowly that it pays to run them by kernels, in between its
    partitions.

    To measure this, the delegate is given one large node of each operator, in one run.
    """
    chosen: dict[str, int] = {}
    for node in sorted(whole.delegated & plain.nodes.keys(), key=lambda node: -plain.nodes[node]):
        op, sources = plain.model[node].op, plain.model[node].sources
        beside = any(other in sources or node in plain.model[other].sources for other in chosen.values())
        if op not in chosen and not beside:
            chosen[op] = node
    times = profile(replace(way, nodes=(runs_text(chosen.values()),))) if len(chosen) > 1 else None
    if times is None:
        return set()

    def handed(node: int) -> int:
        return _TENSOR + plain.model[node].nbytes + sum(plain.model[source].nbytes for source in plain.model[node].sources)

    alone = {op: times.of({node}, plain.nodes) for op, node in chosen.items() if node in times.delegated}
    # The node that takes least for what it is handed does nearly nothing else.
    per_byte = min((seconds / handed(chosen[op]) for op, seconds in alone.items()), default=0.0)
    slow: set[int] = set()
    for node in whole.delegated & plain.nodes.keys():
        op = plain.model[node].op
        if op in alone:
            inside = alone[op] - per_byte * handed(chosen[op])
            theirs = inside * plain.nodes[node] / (plain.nodes[chosen[op]] or 1.0)
            if _WORTH * theirs > plain.nodes[node] + per_byte * handed(node):
                slow.add(node)
    return slow


def _measured(
    way: Candidate,
    segments: Sequence[Sequence[int]],
    plain: NodeTimes,
    whole: NodeTimes,
    withheld: Collection[int],
    profile: Profile,
) -> _Engine | None:
    """Measure the delegate's time for each segment, except `withheld` nodes; None where it cannot run the segments separately."""
    seconds = [0.0] * len(segments)
    for first in (0, 1):
        offered = {node for segment in segments[first::2] for node in segment}.difference(withheld)
        if not offered & whole.delegated:
            times: NodeTimes | None = plain
        else:
            times = profile(replace(way, nodes=(runs_text(offered),)))
        if times is None:
            return None
        for number in range(first, len(segments), 2):
            seconds[number] = times.of(set(segments[number]), plain.nodes)
    # What is saved where none of them has an end is a matter of what crosses it.
    saved = max(0.0, sum(seconds) - whole.total)
    crossing = _crossing([node for segment in segments for node in segment if node in plain.nodes], plain)
    firsts = accumulate((sum(node in plain.nodes for node in segment) for segment in segments), initial=0)
    weights = [crossing[first] for first in firsts][: len(segments)]
    return _Engine(way.delegates[0], seconds, [saved * weight / (sum(weights) or 1) for weight in weights], withheld)


def _fastest(segments: Sequence[Sequence[int]], engines: Sequence[_Engine]) -> _Plan:
    """Find the fastest sequence of engines over the segments, as a shortest path; the first engine is the kernels."""
    best = [(engine.seconds[0], [number]) for number, engine in enumerate(engines)]
    for place in range(1, len(segments)):
        best = [
            min(
                (seconds + engine.seconds[place] - (engine.saved[place] if path[-1] == number else 0.0), [*path, number])
                for seconds, path in best
            )
            for number, engine in enumerate(engines)
        ]
    seconds, path = min(best)
    given: dict[str, list[int]] = {}
    for engine, segment in zip((engines[number] for number in path), segments):
        if engine.name:
            given.setdefault(engine.name, []).extend(node for node in segment if node not in engine.withheld)
    return _Plan(given, seconds)
