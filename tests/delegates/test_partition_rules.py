"""The partitioner against a plain statement of LiteRT's rules, on random graphs."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.budgets import examples

from oplet.delegates.partition import GraphNode, partition_graph
from oplet.errors import DelegateError


def _load_statement() -> ModuleType:
    spec = importlib.util.spec_from_file_location("partition_statement", Path(__file__).parent / "partition_statement.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules.setdefault("partition_statement", importlib.util.module_from_spec(spec))
    spec.loader.exec_module(module)
    return module


rules = _load_statement()

Edges = list[tuple[int, int]]


@st.composite
def graphs(draw: st.DrawFn, orderly: bool = True) -> dict[str, Any]:
    """A graph and what to do with it. `orderly` graphs have an order in which they can run; the plan need not be one."""
    count = draw(st.integers(0, 10))
    outside = draw(st.integers(1, 4))  # tensors 0.. that no node writes
    outputs: list[list[int]] = []
    tensors = outside
    for _ in range(count):
        width = draw(st.integers(0, 3))
        outputs.append(list(range(tensors, tensors + width)))
        tensors += width
    order = draw(st.permutations(range(count)))
    inputs: list[list[int]] = [[] for _ in range(count)]
    for rank, node in enumerate(order):
        before = [t for earlier in (order[:rank] if orderly else order) for t in outputs[earlier]]
        inputs[node] = draw(st.lists(st.sampled_from([-1, *range(outside), *before, *before]), max_size=4))
    plan = draw(st.one_of(st.just(list(range(count))), st.just(order), st.permutations(range(count))))
    kept = draw(st.sets(st.sampled_from(range(count)))) if count and draw(st.booleans()) else set(range(count))
    plan = [n for n in plan if n in kept]
    edges: Edges | None = None
    if draw(st.booleans()):
        ranked = [n for n in order if n in kept]
        rank = st.integers(0, max(len(ranked) - 1, 0))
        pairs = draw(st.lists(st.tuples(rank, rank), max_size=8 if ranked else 0))
        if orderly:
            pairs = [(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1]]
        edges = [(ranked[a], ranked[b]) for a, b in pairs]
    return {
        "nodes": [(inputs[n], outputs[n], draw(st.booleans()) and draw(st.booleans())) for n in range(count)],
        "plan": plan,
        "graph_outputs": draw(st.lists(st.integers(0, tensors - 1), max_size=4)),
        "claimed": sorted(draw(st.sets(st.sampled_from(range(count))))) if count else [],
        "greedy": draw(st.booleans()),
        "control_edges": edges,
        "fuse": draw(st.booleans()) or draw(st.booleans()),
    }


def compare(graph: dict[str, Any]) -> bool:
    """Compare, and return whether the graph can run at all."""
    rest = {key: value for key, value in graph.items() if key != "nodes"}
    stated = rules.stated_partitions([rules.StatedNode(*node) for node in graph["nodes"]], **rest)
    nodes = [GraphNode(*node) for node in graph["nodes"]]
    if stated is None:
        with pytest.raises(DelegateError):
            partition_graph(nodes, **rest)
        return False
    assert [tuple(subset) for subset in partition_graph(nodes, **rest)] == [tuple(subset) for subset in stated]
    return True


def chain(count: int, *also: tuple[int, list[int]]) -> list[tuple[Sequence[int], Sequence[int], bool]]:
    """Nodes in a row, node n reading tensor n and writing n + 1; `also` gives nodes other inputs."""
    return [(dict(also).get(n, [n]), [n + 1], False) for n in range(count)]


FORKED = {
    "nodes": [
        ([0], [1], False),
        ([1], [2], False),
        ([1], [3], False),
        ([3], [4], False),
        ([2], [5], False),
        ([4, 5], [6], False),
    ],
    "plan": range(6),
    "graph_outputs": [6],
    "claimed": [2, 3],
    "greedy": True,
    "control_edges": None,
    "fuse": True,
}


@settings(max_examples=examples(600), deadline=None)
@given(graphs())
@example(FORKED)
@example({**FORKED, "control_edges": [(3, 4)]})
@example({**FORKED, "greedy": False})
@example({**FORKED, "fuse": False})
def test_subsets_kinds_order_inputs_and_outputs_are_what_the_rules_say(graph: dict[str, Any]) -> None:
    may_wait_in_a_circle = graph["greedy"] and graph["control_edges"] is None  # the plan's order of side effects need not be one
    assert compare(graph) or may_wait_in_a_circle


@settings(max_examples=examples(300), deadline=None)
@given(graphs(orderly=False))
@example({**FORKED, "control_edges": [(5, 0)]})
@example({**FORKED, "control_edges": [(2, 2)]})
@example({**FORKED, "control_edges": [(0, 6)]})
@example({**FORKED, "control_edges": [(-1, 2)]})
@example({**FORKED, "claimed": [6]})
@example({**FORKED, "claimed": [-1]})
@example({**FORKED, "plan": range(5), "control_edges": [(5, 0)]})
@example({**FORKED, "plan": range(5), "control_edges": [(0, 5)]})
@example({**FORKED, "plan": range(5), "claimed": [2, 5]})
def test_what_the_rules_refuse_is_refused(graph: dict[str, Any]) -> None:
    compare(graph)


@pytest.mark.parametrize(
    ("edges", "subsets"),
    [(None, [[0, 1, 4], [2, 3], [5]]), ([(3, 4)], [[0, 1], [2, 3], [4, 5]])],
    ids=["no control edge", "control edge from 3 to 4"],
)
def test_the_statement_gives_the_examples_of_litert_s_header(edges: Edges | None, subsets: list[list[int]]) -> None:
    rest = {key: value for key, value in FORKED.items() if key not in ("nodes", "control_edges")}
    nodes = [rules.StatedNode(*node) for node in FORKED["nodes"]]
    assert [subset.nodes for subset in rules.stated_partitions(nodes, control_edges=edges, **rest)] == subsets
