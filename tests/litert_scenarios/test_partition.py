"""How LiteRT's partitioner cuts its own examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pytest

from oplet.delegates.partition import GraphNode, NodeSubset, partition_graph
from oplet.errors import DelegateError

Nodes = list[tuple[tuple[int, ...], tuple[int, ...]]]
Cut = list[tuple[bool, list[int], list[int], list[int]]]


class Case(NamedTuple):
    """One of LiteRT's tests: a graph, what is claimed, and the subsets (claimed, nodes, inputs, outputs)."""

    litert: str
    nodes: Nodes
    outputs: list[int]
    claimed: list[int]
    expected: Cut
    greedy: bool = True
    control_edges: list[tuple[int, int]] | None = None
    side_effects: tuple[int, ...] = ()
    offset: int = 0


ONE: Nodes = [((0,), (1,))]
TWO: Nodes = [((0,), (1,)), ((1,), (2,))]
FORK: Nodes = [((0,), (1,)), ((1,), (2,)), ((1,), (3,))]
# A variable: made, read, added to, assigned, read again.
VARIABLE: Nodes = [((0,), (1,)), ((1,), (2,)), ((2,), (3,)), ((1, 3), ()), ((1,), (4,))]
VARIABLE_CUT: Cut = [(True, [0, 1], [0], [1, 2]), (False, [2], [2], [3]), (True, [3, 4], [1, 3], [4])]
TWO_ARMS: Nodes = [((0,), (1,)), ((1,), (2, 5)), ((2,), (3,)), ((3,), (4,)), ((5,), (6,)), ((6,), (7,))]

CASES = [
    Case("PartitionTest.Nodes0PartitionNodes0", [], [], [], []),
    Case("PartitionTest.Nodes0PartitionNodes0Tensors1", [], [0], [], []),
    Case("PartitionTest.Nodes1PartitionNodes0", ONE, [1], [], [(False, [0], [0], [1])]),
    Case("PartitionTest.Nodes1PartitionNodes0_WithOffset", ONE, [1], [], [(False, [17], [0], [1])], offset=17),
    Case("PartitionTest.Nodes1PartitionNodes0Inputs0", [((), (0,))], [0], [0], [(True, [0], [], [0])]),
    Case("PartitionTest.Nodes1PartitionNodes1", ONE, [1], [0], [(True, [0], [0], [1])]),
    Case("PartitionTest.Nodes2PartitionNodes1", TWO, [2], [1], [(False, [0], [0], [1]), (True, [1], [1], [2])]),
    Case(
        "PartitionTest.Nodes2PartitionNodes1_WithOffset", TWO, [2], [18],
        [(False, [17], [0], [1]), (True, [18], [1], [2])], offset=17,
    ),
    Case("PartitionTest.Nodes2PartitionNodes2", TWO, [2], [0, 1], [(True, [0, 1], [0], [2])]),
    Case(
        "PartitionTest.Nodes3PartitionNodes2", [((0,), (1,)), ((1,), (2,)), ((1, 2), (3,))], [3], [0, 2],
        [(True, [0], [0], [1]), (False, [1], [1], [2]), (True, [2], [1, 2], [3])],
    ),
    Case(
        "PartitionTest.Nodes3PartitionNodes2Greedily", FORK, [2, 3], [0, 2],
        [(True, [0, 2], [0], [1, 3]), (False, [1], [1], [2])],
    ),
    Case(
        "PartitionTest.Nodes3PartitionNodes2ClusteredNonGreedily", FORK, [2, 3], [0, 2],
        [(True, [0], [0], [1]), (False, [1], [1], [2]), (True, [2], [1], [3])], greedy=False,
    ),
    Case(
        "PartitionTest.Nodes4PartitionNodes3_WithControlDependency", VARIABLE, [4], [0, 1, 3, 4], VARIABLE_CUT,
        side_effects=(0, 1, 3, 4),
    ),
    Case(
        "PartitionTest.Nodes4PartitionNodes3_WithExternalControlDependency", VARIABLE, [4], [0, 1, 3, 4], VARIABLE_CUT,
        control_edges=[(0, 1), (1, 3), (3, 4)],
    ),
    Case(
        "PartitionTest.ComplexGreedily", TWO_ARMS, [4, 7], [0, 1, 4, 5],
        [(True, [0, 1, 4, 5], [0], [2, 7]), (False, [2, 3], [2], [4])],
    ),
    Case(
        "PartitionTest.ComplexNonGreedily", TWO_ARMS, [4, 7], [0, 1, 4, 5],
        [(True, [0, 1], [0], [2, 5]), (False, [2, 3], [2], [4]), (True, [4, 5], [5], [7])], greedy=False,
    ),
]  # fmt: skip


def cut(case: Case) -> list[NodeSubset]:
    # Nodes before the offset were there before an earlier delegation; the plan has them no more.
    nodes = [GraphNode((99,), (99,))] * case.offset
    nodes += [GraphNode(inputs, outputs, i in case.side_effects) for i, (inputs, outputs) in enumerate(case.nodes)]
    plan = range(case.offset, len(nodes))
    return partition_graph(nodes, plan, case.outputs, case.claimed, greedy=case.greedy, control_edges=case.control_edges)


@pytest.mark.parametrize("case", CASES, ids=[case.litert for case in CASES])
def test_graphs_are_cut_as_litert_cuts_them(case: Case) -> None:
    assert cut(case) == [NodeSubset(*subset) for subset in case.expected]


class Refused(NamedTuple):
    """One of LiteRT's tests of what the partitioner refuses."""

    litert: str
    nodes: Nodes
    claimed: Sequence[int]
    control_edges: list[tuple[int, int]] | None
    message: str


REFUSED = [
    Refused("PartitionTest.InvalidNodesToPartitionRejected", ONE, [1], None, "claims node 1 of a graph of 1 nodes"),
    Refused("PartitionTest.InvalidControlEdgesRejected", TWO, [0], [(-1, 0)], "from node -1 to node 0"),
    Refused("PartitionTest.InvalidControlEdgesRejected", TWO, [0], [(0, -1)], "from node 0 to node -1"),
    Refused("PartitionTest.InvalidControlEdgesRejected", TWO, [0], [(2, 0)], "from node 2 to node 0"),
    Refused("PartitionTest.InvalidControlEdgesRejected", TWO, [0], [(0, 2)], "from node 0 to node 2"),
    Refused("PartitionTest.UnscheduledNodesRejected", [((0,), (2,)), ((1,), (3,))], [0, 1], [(1, 1)], "cycle"),
]


@pytest.mark.parametrize("case", REFUSED, ids=[f"{case.litert} {case.control_edges}" for case in REFUSED])
def test_what_litert_refuses_is_refused(case: Refused) -> None:
    nodes = [GraphNode(inputs, outputs) for inputs, outputs in case.nodes]
    with pytest.raises(DelegateError, match=case.message):
        partition_graph(nodes, range(len(nodes)), [2], case.claimed, control_edges=case.control_edges)
