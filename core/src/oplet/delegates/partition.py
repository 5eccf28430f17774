"""Partitioning of a graph into subsets of nodes that a delegate claims and subsets of other nodes.

Rules: tflite/graph_info.cc of google-ai-edge/LiteRT. Grouping is greedy: a subset takes every ready node of its kind, also past nodes
that are not ready yet, so that partitions are few and large. A node is ready when its inputs have been computed and all nodes with
control edges to it have run.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from oplet.errors import DelegateError

__all__ = ["GraphNode", "NodeSubset", "largest_partitions", "partition_graph"]

_ALWAYS_READY = -2
_NOT_READY = -1


class GraphNode(NamedTuple):
    """The edges of a node, for the partitioner."""

    inputs: Sequence[int]  #: Tensor indices; -1 for optional inputs that are omitted.
    outputs: Sequence[int]  #: Tensor indices.
    side_effects: bool = False  #: Whether it must keep its order among nodes with side effects.


class NodeSubset(NamedTuple):
    """A subset of nodes that run together.

    Attributes:
        claimed: whether the delegate runs them.
        nodes: indices of the nodes, in the order in which they run.
        inputs: indices of the tensors that the nodes read from outside of the subset, including constants, sorted.
        outputs: indices of the tensors written by the nodes that other nodes, or the caller, read, sorted.
    """

    claimed: bool
    nodes: list[int]
    inputs: list[int]
    outputs: list[int]


def largest_partitions(
    partitions: Sequence[NodeSubset],
    least_nodes: int,
    most: int,
    refused: dict[int, str] | None = None,
    names: tuple[str, str] = ("min_nodes", "max_partitions"),
) -> list[NodeSubset]:
    """Return the partitions with at least `least_nodes` nodes: all in their order, or the `most` largest, by descending size.

    Args:
        partitions: the partitions.
        least_nodes: the least number of nodes of a partition.
        most: the most partitions; 0 for all.
        refused: receives, by its index, why a node of another partition is left out; None where nobody asks.
        names: what the delegate's users call `least_nodes` and `most`.
    """
    kept = [subset for subset in partitions if len(subset.nodes) >= least_nodes]
    kept = sorted(kept, key=lambda subset: -len(subset.nodes))[:most] if most else kept
    if refused is not None:
        limits = f"{names[0]}={least_nodes}, {names[1]}={most}"
        for subset in partitions:
            if subset not in kept:
                refused.update(dict.fromkeys(subset.nodes, f"its partition of {len(subset.nodes)} nodes is left out ({limits})"))
    return kept


def partition_graph(
    nodes: Sequence[GraphNode],
    plan: Sequence[int],
    graph_outputs: Iterable[int],
    claimed: Collection[int],
    *,
    greedy: bool = True,
    control_edges: Iterable[tuple[int, int]] | None = None,
    fuse: bool = True,
    first: Collection[int] = (),
) -> list[NodeSubset]:
    """Partition a graph into subsets of claimed and of other nodes, in the order in which they run.

    Args:
        nodes: all nodes.
        plan: indices of the nodes to run, in order.
        graph_outputs: indices of the tensors that the caller reads.
        claimed: indices of the nodes that the delegate claims; those that are not in the plan are ignored.
        greedy: whether to take ready nodes past nodes that are not ready; otherwise the order of the plan is kept.
        control_edges: pairs (before, after) of nodes; None to keep only the order of nodes with side effects.
        fuse: whether a subset may have several nodes.
        first: nodes that, unless they are claimed, form a subset before all others; only if `greedy`. They are nodes that convert
            constants, which would otherwise split the claimed nodes around them into two subsets.

    Raises:
        DelegateError: an index does not exist, or the graph has a cycle.
    """
    known = set(plan)
    for index in claimed:
        if not 0 <= index < len(nodes):
            raise DelegateError(f"A delegate claims node {index} of a graph of {len(nodes)} nodes.")
    if control_edges is None:
        effects = [i for i in plan if nodes[i].side_effects] if greedy else []
        control_edges = itertools.pairwise(effects)
    successors: dict[int, set[int]] = {}
    waiting = dict.fromkeys(plan, 0)
    for before, after in set(control_edges):
        if before not in known or after not in known:
            raise DelegateError(f"A control edge leads from node {before} to node {after}, which are not both in the plan.")
        successors.setdefault(before, set()).add(after)
        waiting[after] += 1

    made_in: dict[int, int] = {tensor: _NOT_READY for i in plan for tensor in nodes[i].outputs}
    wanted = set(claimed)
    left = dict.fromkeys(plan)
    early = set(first) - wanted if greedy else set()
    subsets: list[NodeSubset] = []

    def ready(index: int) -> bool:
        inputs_made = all(made_in.get(t, _ALWAYS_READY) != _NOT_READY for t in nodes[index].inputs if t != -1)
        return not waiting[index] and inputs_made

    while left:
        epoch = len(subsets)
        kind: bool | None = None
        taken: list[int] = []
        inputs: set[int] = set()
        closed = growing = False
        while not closed:
            growing = False
            for index in tuple(left) if greedy else plan:
                if early and index not in early:
                    continue
                fits = index in left and kind in (None, index in wanted) and ready(index)
                if not fits:
                    if growing and not greedy:
                        closed = True  # to keep the order of the plan, the subset ends at the first node that does not fit
                        break
                    continue
                del left[index]
                kind = index in wanted
                taken.append(index)
                growing = True
                for tensor in nodes[index].inputs:
                    origin = made_in.get(tensor, _ALWAYS_READY)
                    if tensor != -1 and origin != epoch:
                        inputs.add(tensor)
                        if origin >= 0:
                            subsets[origin].outputs.append(tensor)
                for tensor in nodes[index].outputs:
                    made_in[tensor] = epoch
                for after in successors.get(index, ()):
                    waiting[after] -= 1
                if not fuse:
                    closed = True
                    break
            if not growing:
                break
        if early:
            early.clear()
            if not taken:
                continue
        if not taken:
            raise DelegateError(f"The graph has a cycle: nodes {list(left)[:8]} wait for each other.")
        subsets.append(NodeSubset(bool(kind), taken, sorted(inputs), []))
    for tensor in graph_outputs:
        origin = made_in.get(tensor, _ALWAYS_READY)
        if origin >= 0:
            subsets[origin].outputs.append(tensor)
    return [subset._replace(outputs=sorted(set(subset.outputs))) for subset in subsets]
