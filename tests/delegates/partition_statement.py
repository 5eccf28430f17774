"""The rules by which a graph is cut into partitions, said as plainly as possible: slow, without any bookkeeping.

Written from the description of tflite/graph_info.cc (google-ai-edge/LiteRT) and independent of oplet's partitioner, which the
tests compare with it.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

#: Who reads the graph's outputs; any number that is no node's.
_CALLER = -1


class StatedNode(NamedTuple):
    """What the rules know of a node: tensor indices, -1 for an optional input that is left out."""

    inputs: Sequence[int]
    outputs: Sequence[int]
    side_effects: bool = False


class StatedSubset(NamedTuple):
    """One subset; its fields are those of oplet's NodeSubset."""

    claimed: bool
    nodes: list[int]
    inputs: list[int]
    outputs: list[int]


def stated_partitions(
    nodes: Sequence[StatedNode],
    plan: Sequence[int],
    graph_outputs: Iterable[int],
    claimed: Collection[int],
    *,
    greedy: bool = True,
    control_edges: Iterable[tuple[int, int]] | None = None,
    fuse: bool = True,
) -> list[StatedSubset] | None:
    """The subsets in the order in which they run; None if the rules call the graph wrong."""
    if any(not 0 <= index < len(nodes) for index in claimed):
        return None
    if control_edges is None:
        effects = [n for n in plan if nodes[n].side_effects]
        control_edges = list(itertools.pairwise(effects)) if greedy else []
    edges = set(control_edges)
    if any(end not in plan for edge in edges for end in edge):
        return None
    # A node waits for whoever writes what it reads, and for whoever an edge puts before it.
    writer = {tensor: n for n in plan for tensor in nodes[n].outputs}
    waits_for = {
        n: {writer[t] for t in nodes[n].inputs if t in writer} | {before for before, after in edges if after == n} for n in plan
    }
    members: list[list[int]] = []
    while True:
        done = {n for subset in members for n in subset}
        ready = [n for n in plan if n not in done and waits_for[n] <= done]
        if not ready:
            break
        members.append(_fill(ready[0], plan, waits_for, done, claimed, greedy) if fuse else [ready[0]])
    if len(done) < len(plan):
        return None
    readers: dict[int, set[int]] = {tensor: {_CALLER} for tensor in graph_outputs}
    for n in plan:
        for tensor in nodes[n].inputs:
            readers.setdefault(tensor, set()).add(n)
    return [_bordered(subset, subset[0] in claimed, nodes, readers) for subset in members]


def _fill(
    first: int, plan: Sequence[int], waits_for: dict[int, set[int]], done: set[int], claimed: Collection[int], greedy: bool
) -> list[int]:
    """A subset that has its kind from its first node: scan the plan from the front, again and again, until a scan adds none."""
    subset: list[int] = []
    done = set(done)
    while True:
        added = 0
        for n in plan:
            fits = n not in done and waits_for[n] <= done
            if fits and (n in claimed) == (first in claimed):
                subset.append(n)
                done.add(n)
                added += 1
            elif added and not greedy:
                return subset  # the order of the plan is kept: nobody is passed over
        if not added:
            return subset


def _bordered(subset: list[int], claimed: bool, nodes: Sequence[StatedNode], readers: dict[int, set[int]]) -> StatedSubset:
    """With the tensors that cross the subset's border."""
    written = {t for n in subset for t in nodes[n].outputs}
    read = {t for n in subset for t in nodes[n].inputs if t != -1}
    wanted = {t for t in written if readers.get(t, set()) - set(subset)}
    return StatedSubset(claimed, subset, sorted(read - written), sorted(wanted))
