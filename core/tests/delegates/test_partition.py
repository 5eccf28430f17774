"""How a graph is cut for a delegate: LiteRT's rules, stated again by brute force."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oplet.delegates.partition import GraphNode, NodeSubset, partition_graph
from oplet.errors import DelegateError


def chain(*edges: tuple[tuple[int, ...], tuple[int, ...]]) -> list[GraphNode]:
    return [GraphNode(inputs, outputs) for inputs, outputs in edges]


def cut(nodes: list[GraphNode], outputs: list[int], claimed: set[int], **options: object) -> list[NodeSubset]:
    return partition_graph(nodes, range(len(nodes)), outputs, claimed, **options)  # type: ignore[arg-type]


# Six nodes: 0 -> 1 -> 2 -> 3 -> 5, and 4, which hangs on node 1 alone.
SIX = chain(((0,), (1,)), ((1,), (2,)), ((2,), (3,)), ((3,), (4,)), ((2,), (5,)), ((4, 5), (6,)))


def test_ready_nodes_join_a_subset_past_nodes_that_are_not_ready() -> None:
    assert [s.nodes for s in cut(SIX, [6], {2, 3})] == [[0, 1, 4], [2, 3], [5]]


def test_a_control_edge_keeps_a_node_behind_another() -> None:
    assert [s.nodes for s in cut(SIX, [6], {2, 3}, control_edges=[(3, 4)])] == [[0, 1], [2, 3], [4, 5]]


def test_without_clustering_the_order_of_the_plan_is_kept() -> None:
    assert [s.nodes for s in cut(SIX, [6], {2, 3}, greedy=False)] == [[0, 1], [2, 3], [4, 5]]


def test_without_fusion_every_subset_is_one_node() -> None:
    assert sorted(s.nodes for s in cut(SIX, [6], {2, 3}, fuse=False)) == [[i] for i in range(6)]


def test_nodes_that_come_first_do_not_part_the_claimed_ones() -> None:
    # Node 1 widens a constant, 10, which node 2 reads.
    nodes = chain(((0,), (1,)), ((10,), (11,)), ((1, 11), (2,)))
    assert [s.nodes for s in cut(nodes, [2], {0, 2})] == [[0], [1], [2]]
    first, second = cut(nodes, [2], {0, 2}, first=[1])
    assert (first.nodes, first.claimed, first.outputs) == ([1], False, [11])
    assert (second.nodes, second.claimed, second.inputs) == ([0, 2], True, [0, 11])


@pytest.mark.parametrize(
    ("claimed", "options"), [({0, 1, 2}, {}), ({0, 2}, {"greedy": False}), ({0, 2}, {"control_edges": [(0, 1)]})]
)
def test_nodes_come_first_only_if_they_may(claimed: set[int], options: dict[str, object]) -> None:
    nodes = chain(((0,), (1,)), ((10,), (11,)), ((1, 11), (2,)))
    assert cut(nodes, [2], claimed, first=[1], **options) == cut(nodes, [2], claimed, **options)


def test_inputs_include_constants_and_outputs_are_what_others_read() -> None:
    nodes = chain(((0, 10), (1,)), ((1, 11), (2,)), ((2, -1), (3,)))
    first, second, third = cut(nodes, [3], {1})
    assert (first.inputs, first.outputs, first.claimed) == ([0, 10], [1], False)
    assert (second.inputs, second.outputs, second.claimed) == ([1, 11], [2], True)
    assert (third.inputs, third.outputs) == ([2], [3])


def test_nodes_with_side_effects_keep_their_order() -> None:
    nodes = [GraphNode((0,), (1,), True), GraphNode((0,), (2,)), GraphNode((0,), (3,), True)]
    assert [s.nodes for s in cut(nodes, [1, 2, 3], {1, 2})] == [[0], [1, 2]]
    assert [s.nodes for s in cut(nodes, [1, 2, 3], {0, 1})] == [[0, 1], [2]]
    assert [s.nodes for s in cut(nodes, [1, 2, 3], {0})] == [[0], [1, 2]]


def test_a_cycle_is_an_error() -> None:
    with pytest.raises(DelegateError, match="cycle"):
        cut(chain(((1,), (0,)), ((0,), (1,))), [1], {0})


def test_a_claim_outside_the_plan_is_an_error() -> None:
    with pytest.raises(DelegateError, match="claims node 9"):
        cut(SIX, [6], {9})


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[GraphNode], set[int]]:
    nodes = []
    for index in range(draw(st.integers(1, 10))):
        inputs = draw(st.lists(st.integers(0, index), min_size=1, max_size=3))
        nodes.append(GraphNode(tuple(inputs), (index + 1,), draw(st.booleans()) and draw(st.booleans())))
    return nodes, draw(st.sets(st.integers(0, len(nodes) - 1)))


def brute_force(nodes: list[GraphNode], claimed: set[int]) -> list[set[int]]:
    """Each subset is the largest set of one kind that closes under: ready, given what the earlier subsets made.

    The kind is that of the first ready node in plan order.
    """
    effects = [i for i, node in enumerate(nodes) if node.side_effects]
    before = dict(zip(effects[1:], effects))
    made, done, subsets = {0}, set(), []
    while len(done) < len(nodes):
        subset: set[int] = set()
        kind = None
        changed = True
        while changed:
            changed = False
            for i, node in enumerate(nodes):
                fits = kind is None or (i in claimed) == kind
                if i in done or not fits or not set(node.inputs) <= made or before.get(i, -1) not in done | {-1}:
                    continue
                kind = i in claimed
                subset.add(i)
                done.add(i)
                made.update(node.outputs)
                changed = True
        subsets.append(subset)
    return subsets


@given(graphs())
def test_subsets_equal_a_brute_force_statement_of_the_rules(graph: tuple[list[GraphNode], set[int]]) -> None:
    nodes, claimed = graph
    assert [set(s.nodes) for s in cut(nodes, [len(nodes)], claimed)] == brute_force(nodes, claimed)


@given(graphs(), st.booleans(), st.booleans())
def test_every_node_runs_once_and_after_what_it_reads(graph: tuple[list[GraphNode], set[int]], greedy: bool, fuse: bool) -> None:
    nodes, claimed = graph
    subsets = cut(nodes, [len(nodes)], claimed, greedy=greedy, fuse=fuse)
    order = [i for s in subsets for i in s.nodes]
    assert sorted(order) == list(range(len(nodes)))
    made = {0}
    for subset in subsets:
        assert set(subset.inputs) <= made
        for index in subset.nodes:
            assert set(nodes[index].inputs) <= made
            made.update(nodes[index].outputs)
        assert all((i in claimed) == subset.claimed for i in subset.nodes)
