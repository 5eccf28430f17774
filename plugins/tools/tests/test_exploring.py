"""The data of a model's graph, and the files that it is written to."""

from __future__ import annotations

import json
import re

import pytest
from plugins.tools.tests.exploring_models import HOSTILE, deep_model, hostile_model

from oplet import ModelBuilder
from oplet.schema.options import IfOptions
from oplet_tools.describing.exploring.explore import explore_model
from oplet_tools.describing.exploring.graph import ExploredSubgraph, Group
from oplet_tools.describing.exploring.groups import group_nodes, path_of
from oplet_tools.describing.exploring.model_explorer import model_explorer_json
from oplet_tools.describing.exploring.page import explore_page


@pytest.fixture
def write(tmp_path):
    """Writes a model to a file."""

    def written(content):
        path = tmp_path / "model.tflite"
        path.write_bytes(content)
        return path

    return written


def boxes(subgraph: ExploredSubgraph, groups: list[Group]) -> int:
    """How many boxes a viewer shows at first."""
    by_id = {group.id: group for group in groups}

    def shown(group):
        return group.parent is None or (by_id[group.parent].open and shown(by_id[group.parent]))

    grouped = {node for group in groups for node in group.nodes}
    free = [node for node in subgraph.nodes if not node.folded and node.index not in grouped]
    return len(free) + sum(len(group.nodes) if group.open else 1 for group in groups if shown(group))


def test_a_large_model_starts_as_a_legible_number_of_boxes_and_a_small_one_as_it_is(write):
    [large] = explore_model(write(deep_model(712))).subgraphs
    assert len(large.nodes) == 712
    assert 10 <= boxes(large, large.groups) <= 60
    [small] = explore_model(write(deep_model(30))).subgraphs
    assert boxes(small, small.groups) == 30 - sum(node.folded for node in small.nodes)


def test_groups_are_the_paths_in_the_names_and_hold_every_node_once(write):
    [subgraph] = explore_model(write(deep_model(712))).subgraphs
    assert {"net", "stage_0", "stage_11", "block_3"} <= {group.label for group in subgraph.groups}
    held = [node for group in subgraph.groups for node in group.nodes]
    assert sorted(held) == [node.index for node in subgraph.nodes if not node.folded]


def test_nodes_without_paths_are_grouped_by_where_they_stand():
    ops = dict.fromkeys(range(500), "ADD")
    groups = group_nodes(dict.fromkeys(ops, ()), [1] * 500, ops)
    assert sorted(node for group in groups for node in group.nodes) == list(ops)
    assert all(group.nodes == list(range(min(group.nodes), max(group.nodes) + 1)) for group in groups)
    assert 10 <= len(groups) <= 60


def test_the_path_in_a_name_ends_before_its_last_part():
    assert path_of("a/b/Relu;a/c/d") == ("a", "b")
    assert path_of("Identity") == ()


def test_folders_within_folders_without_end_are_grouped_to_a_depth() -> None:
    paths = {node: path_of("/".join(f"l{depth}" for depth in range(node + 2))) for node in range(2000)}
    groups = group_nodes(paths, [1] * 2000, dict.fromkeys(paths, "NEG"))
    assert sorted(node for group in groups for node in group.nodes) == list(range(2000))
    assert len(max(paths.values(), key=len)) == 32


def test_a_node_that_only_prepares_a_constant_is_folded(write):
    [subgraph] = explore_model(write(deep_model(30))).subgraphs
    assert {node.op for node in subgraph.nodes if node.folded} == {"DEQUANTIZE"}
    assert all(node.folded for node in subgraph.nodes if node.op == "DEQUANTIZE")


def conditional() -> bytes:
    builder = ModelBuilder()
    main = builder.add_subgraph("main")
    which, x = main.add_tensor("which", "bool", []), main.add_tensor("x", "float32", [4])
    y = main.add_tensor("y", "float32", [4])
    main.set_inputs(which, x)
    main.set_outputs(y)
    main.add_operator("IF", [which, x], [y], IfOptions(then_subgraph_index=1, else_subgraph_index=2))
    for name, op in (("then", "RELU"), ("else", "TANH")):
        body = builder.add_subgraph(name)
        a, b = body.add_tensor("a", "float32", [4]), body.add_tensor("b", "float32", [4])
        body.set_inputs(a)
        body.set_outputs(b)
        body.add_operator(op, [a], [b])
    return builder.to_bytes()


def test_control_flow_tells_the_subgraphs_that_it_calls(write):
    model = explore_model(write(conditional()))
    assert [node.calls for node in model.subgraphs[0].nodes] == [[1, 2]]
    assert [node.calls for subgraph in model.subgraphs[1:] for node in subgraph.nodes] == [[], []]
    [graph, then, other] = json.loads(model_explorer_json(model))["graphs"]
    assert [node["subgraphIds"] for node in graph["nodes"] if node["label"] == "IF"] == [[then["id"], other["id"]]]


def test_edges_lead_from_inputs_through_nodes_to_outputs(write):
    [subgraph] = explore_model(write(deep_model(8, constants=False))).subgraphs
    [x], [y] = subgraph.inputs, subgraph.outputs
    assert {(edge.source, tuple(edge.tensors)) for edge in subgraph.edges if edge.source < 0} == {(-1, (x,))}
    assert [edge.tensors for edge in subgraph.edges if edge.target < 0] == [[y]]
    linked = {edge.source for edge in subgraph.edges} | {edge.target for edge in subgraph.edges}
    assert linked == {-1, *(node.index for node in subgraph.nodes)}


def test_measured_times_and_shares_are_those_of_the_nodes(write):
    path = write(deep_model(4, constants=False))
    [subgraph] = explore_model(path, times=({(0, 0): 0.003, (0, 1): 0.001}, 7)).subgraphs
    assert [(node.seconds, node.share) for node in subgraph.nodes[:3]] == [(0.003, 0.75), (0.001, 0.25), (None, None)]


def test_what_model_explorer_opens_is_whole(write):
    model = explore_model(write(deep_model(100)))
    collection = json.loads(model_explorer_json(model))
    [graph] = collection["graphs"]
    ids = [node["id"] for node in graph["nodes"]]
    assert len(ids) == len(set(ids)) == 2 + sum(not node.folded for node in model.subgraphs[0].nodes)
    assert {edge["sourceNodeId"] for node in graph["nodes"] for edge in node.get("incomingEdges", ())} <= set(ids)
    assert any(node["namespace"].startswith("net/stage_0") for node in graph["nodes"])


def test_no_name_ends_a_script_of_the_page_or_leaves_its_data(write):
    model = explore_model(write(hostile_model()))
    page = explore_page(model)
    clean = explore_page(explore_model(write(deep_model(8))))
    for mark in ("<script", "</script", "<!--", "<img"):
        assert page.count(mark) == clean.count(mark), mark
    data = re.search(r'<script type="application/json" id="model">(.*?)</script>', page, re.DOTALL)
    names = [tensor["name"] for tensor in json.loads(data[1])["subgraphs"][0]["tensors"].values()]
    assert names[0] == HOSTILE[0]
    assert any("x" * 10_000 in name for name in names)
    assert all(name.isprintable() for name in names)
    page.encode("utf-8")


def test_the_page_forbids_every_connection(write):
    page = explore_page(explore_model(write(deep_model(8))))
    assert "content=\"default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:\"" in page
    assert "Permission is hereby granted" in page, "the libraries' licences go with them"
    assert "sourceMappingURL" not in page


def test_nodes_that_stay_are_grouped_between_the_partitions_that_run_around_them():
    ops = dict.fromkeys(range(9), "ADD")
    partitions = {node: (node // 3, f"partition {node // 3}") for node in ops if node % 3 == 0}
    groups = group_nodes(dict.fromkeys(ops, ("net",)), [1] * 9, ops, partitions, {node: node // 3 + 1 for node in ops})
    assert [(group.label, group.nodes) for group in groups if group.nodes and group.label == "stays"] == [
        ("stays", [1, 2]), ("stays", [4, 5]), ("stays", [7, 8]),
    ]  # fmt: skip


def layers(*names: str) -> dict[int, tuple[str, ...]]:
    """The paths of nodes, two for each layer."""
    return {2 * place + half: ("net", name) for place, name in enumerate(names) for half in (0, 1)}


def labels_of(paths: dict[int, tuple[str, ...]]) -> list[str]:
    return [group.label for group in group_nodes(paths, [1] * len(paths), dict.fromkeys(paths, "ADD"))]


def test_layers_whose_names_begin_alike_are_a_group_of_that_name():
    paths = layers(
        "stem_conv", "stem_bn", "block1a_dwconv", "block1a_se_squeeze", "block2a_expand_conv", "block2a_bn", "top_conv"
    )
    assert [label for label in labels_of(paths) if "_" not in label] == ["net", "stem", "block1a", "block2a"]
    inside = {group.label: group for group in group_nodes(paths, [1] * len(paths), dict.fromkeys(paths, "ADD"))}
    assert inside["block1a_dwconv"].parent == inside["block1a"].id
    assert inside["block1a"].parent == inside["net"].id
    assert inside["top_conv"].parent == inside["net"].id
    assert {"block_1", "block_2"} <= set(labels_of(layers("block_1_expand", "block_1_project", "block_2_expand", "block_2_add")))


@pytest.mark.parametrize(
    "names",
    [
        ("conv2d", "conv2d_1", "conv2d_2", "dense"),  # numbered, not parts of something
        ("left_conv", "right_conv", "left_bn", "right_bn"),  # they lie between each other
        ("block_1_conv", "block_1_bn"),  # all of them
        ("_a", "__", "_"),
    ],
)
def test_names_that_say_no_part_of_the_network_make_no_group(names):
    assert set(labels_of(layers(*names))) == {"net", *names}
