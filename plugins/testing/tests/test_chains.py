"""Chains of nodes and elementwise ops for tests."""

from __future__ import annotations

import doctest
from typing import Any

import numpy as np
import pytest

from oplet import Interpreter, Model, MutableOpResolver, Registration
from oplet.errors import ModelError
from oplet.schema.options import SoftmaxOptions
from oplet_testing import Graph, Op, Spec, chain_graph, chains, elementwise, graph_model, invoke, one_op_model

X = Spec("float32", [3])


def opened(model: bytes, **ops: Registration) -> Interpreter:
    resolver = MutableOpResolver()
    for name, registration in ops.items():
        resolver.add_custom(name, registration)
    return Interpreter(model_content=model, op_resolver=resolver, plugins=[])


def test_a_chain_s_nodes_each_read_what_the_one_before_writes() -> None:
    [subgraph] = Model.from_bytes(
        graph_model(chain_graph(["TANH", Op("SOFTMAX", options=SoftmaxOptions(beta=2.0))], X))
    ).root.subgraphs
    assert [tensor.name for tensor in subgraph.tensors] == ["t0", "t1", "t2"]
    assert [(list(op.inputs), list(op.outputs)) for op in subgraph.operators] == [([0], [1]), ([1], [2])]
    assert subgraph.operators[1].builtin_options.beta == 2
    assert (list(subgraph.inputs), list(subgraph.outputs)) == ([0], [2])


def test_other_tensors_may_be_the_outputs() -> None:
    graph = chain_graph(["Add"] * 3, X, outputs=[1, 3], name="sums")
    assert (graph.outputs, graph.name) == ("t1 t3", "sums")
    interpreter = opened(graph_model(graph), Add=elementwise(lambda x: x + 1))
    assert [found.tolist() for found in invoke(interpreter, np.zeros(3, np.float32))] == [[1] * 3, [3] * 3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ops": []}, r"chain_graph takes a list of one op or more, each a name or an Op as ops, not \[\] \(list\)"),
        ({"ops": "TANH"}, "chain_graph takes a list of one op or more"),
        ({"ops": [3]}, "chain_graph takes a list of one op or more"),
        ({"spec": "float32"}, "chain_graph takes a Spec as spec, not 'float32'"),
        ({"ops": [Op("TANH", "x", "y")]}, "chain_graph names the tensors; leave them out of Op"),
        ({"outputs": 2}, "chain_graph takes a list of whole numbers as outputs, not 2"),
        ({"outputs": [0, 3]}, "chain_graph has no tensor 3 for an output; its tensors are 0 to 2"),
        ({"outputs": [-1]}, "chain_graph has no tensor -1 for an output"),
    ],
)
def test_what_makes_no_chain_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        chain_graph(**{"ops": ["TANH", "RELU"], "spec": X, **arguments})


def test_an_elementwise_op_computes_its_function_of_inputs_that_are_broadcast() -> None:
    model = one_op_model("Less", [Spec("int32", [2, 1]), Spec("int32", [3])], [Spec("bool", [2, 3])])
    interpreter = opened(model, Less=elementwise(np.less))
    [found] = invoke(interpreter, np.array([[1], [3]], np.int32), np.array([0, 2, 4], np.int32))
    assert found.tolist() == [[False, True, True], [False, False, True]]
    [found] = invoke(interpreter, np.zeros((1, 1), np.int32), np.ones(2, np.int32), resize=True)
    assert found.tolist() == [[True, True]]


def test_an_elementwise_op_resizes_an_output_that_is_dynamic() -> None:
    dynamic = Registration(
        prepare=lambda context, node: context.set_dynamic(node.outputs[0]),
        invoke=lambda context, node: context.resize_tensor(node.outputs[0], node.inputs[0].shape),
    )
    tensors = dict.fromkeys("xyz", X)
    model = graph_model(Graph(tensors, "x", "z", [Op("Dynamic", "x", "y"), Op("Five", "y", "z")]))
    interpreter = opened(model, Dynamic=dynamic, Five=elementwise(lambda y: np.full(y.shape, 5)))
    assert [found.tolist() for found in invoke(interpreter, np.zeros(4, np.float32), resize=True)] == [[5] * 4]


def test_an_elementwise_op_takes_the_fields_of_a_registration() -> None:
    freed: list[Any] = []
    registration = elementwise(
        np.negative, pure=True, init=lambda context, buffer: "state", free=lambda context, state: freed.append(state)
    )
    assert registration.pure
    interpreter = opened(one_op_model("Own", [X], [X]), Own=registration)
    [found] = invoke(interpreter, np.ones(3, np.float32))
    interpreter.close()
    assert (found.tolist(), freed) == ([-1] * 3, ["state"])
    with pytest.raises(ModelError, match="elementwise takes a function of arrays as function, not 3"):
        elementwise(3)  # type: ignore[arg-type]


def test_the_examples_in_the_documentation_run() -> None:
    assert doctest.testmod(chains).failed == 0
