"""Models written down tensor by tensor."""

from __future__ import annotations

import pytest

from oplet.errors import ModelError
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
