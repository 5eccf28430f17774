"""Models written down tensor by tensor."""

from __future__ import annotations

import pytest

from oplet import Model
from oplet.errors import ModelError
from oplet.schema.flexbuffers import read_flexbuffer
from oplet_testing.graphs import Graph, Op, graph_model
from oplet_testing.one_op import Spec

X = Spec("float32", [2])


@pytest.mark.parametrize(
    ("graph", "where"),
    [
        (Graph({"a": X, "b": X}, "a", "b", [Op("RELU", "ak", "b")]), r"Op\('RELU', 'ak', 'b'\) of graph 0"),
        (Graph({"a": X, "b": X}, "a ak", "b"), "The inputs of graph 0"),
        (Graph({"a": X, "b": X}, "a", "ak"), "The outputs of graph 0"),
    ],
)
def test_a_name_that_no_tensor_has_is_told_with_those_that_there_are(graph: Graph, where: str) -> None:
    with pytest.raises(ModelError, match=f"{where} names? 'ak'.*there are a, b"):
        graph_model(graph)


def test_a_node_has_custom_options_and_leaves_an_input_out() -> None:
    graph = Graph({"a": X, "b": X}, "a", "b", [Op("Mine", "a - a", "b", custom_options={"epsilon": 0.5})])
    [subgraph] = Model.from_bytes(graph_model(graph)).root.subgraphs
    [node] = subgraph.operators
    assert node.inputs.tolist() == [0, -1, 0]
    assert read_flexbuffer(node.custom_options.tobytes()) == {"epsilon": 0.5}
    with pytest.raises(ModelError, match="'-'"):
        graph_model(Graph({"a": X, "b": X}, "a", "b", [Op("Mine", "a", "-")]))
