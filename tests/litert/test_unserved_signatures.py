"""Ops that nobody serves stop what they are part of, and nothing else."""

from __future__ import annotations

import re

import numpy as np
import pytest

from oplet import Interpreter, MutableOpResolver, Registration, load_delegate
from oplet.builder import ModelBuilder, SubgraphBuilder
from oplet.errors import OpNotFoundError, UnresolvedOpError
from oplet.schema.options import IfOptions

ONES = np.ones(2, np.float32)


def one_op(builder: ModelBuilder, op: str, key: str) -> SubgraphBuilder:
    """A subgraph of one node, with a signature unless `key` is empty."""
    graph = builder.add_subgraph(op)
    x, y = (graph.add_tensor(name, "float32", [2]) for name in "xy")
    graph.add_operator(op, [x], [y])
    graph.set_inputs(x)
    graph.set_outputs(y)
    if key:
        builder.add_signature(key, {"x": x}, {"y": y}, graph)
    return graph


def branching(then: str, otherwise: str, key: str, *, first: str = "") -> ModelBuilder:
    """IF in a subgraph of its own, its branches one op each; `first` is the op of the subgraph before it."""
    builder = ModelBuilder()
    if first:
        one_op(builder, first, "first")
    graph = builder.add_subgraph("caller")
    condition, x, y = (
        graph.add_tensor("c", "bool", [1]),
        graph.add_tensor("x", "float32", [2]),
        graph.add_tensor("y", "float32", [2]),
    )
    at = len(builder.subgraphs)
    graph.add_operator("IF", [condition, x], [y], IfOptions(then_subgraph_index=at, else_subgraph_index=at + 1))
    graph.set_inputs(condition, x)
    graph.set_outputs(y)
    builder.add_signature(key, {"c": condition, "x": x}, {"y": y}, graph)
    one_op(builder, then, "")
    one_op(builder, otherwise, "")
    return builder


@pytest.mark.parametrize("op", ["FlexSave", "Nobodys"])
def test_a_signature_with_ops_that_nobody_serves_leaves_the_others_alone(op: str) -> None:
    builder = ModelBuilder()
    one_op(builder, "NEG", "infer")
    one_op(builder, op, "save")
    interpreter = Interpreter(model_content=builder.to_bytes())
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, ONES)
    interpreter.invoke()
    assert interpreter.get_tensor(1).tolist() == [-1, -1]
    save = interpreter.get_signature_runner("save")  # as in LiteRT, it is the call that fails
    with pytest.raises(UnresolvedOpError, match=op) as caught:
        save(x=ONES)
    assert caught.value.ops == (op,)
    assert interpreter.get_signature_runner("infer")(x=ONES)["y"].tolist() == [-1, -1]
    assert [report.plugin for report in interpreter.explain() if report.op == op] == [""]


def test_a_first_subgraph_with_ops_that_nobody_serves_leaves_the_signatures_of_others_alone() -> None:
    builder = ModelBuilder()
    one_op(builder, "Nobodys", "save")
    one_op(builder, "NEG", "infer")
    interpreter = Interpreter(model_content=builder.to_bytes())
    with pytest.raises(UnresolvedOpError, match=r"Encountered unresolved custom op: Nobodys\."):
        interpreter.allocate_tensors()
    assert interpreter.get_signature_runner("infer")(x=ONES)["y"].tolist() == [-1, -1]


def test_ops_in_called_subgraphs_are_part_of_what_is_run_and_all_named() -> None:
    builder = branching("Nobodys", "FlexOther", "branch", first="NEG")
    interpreter = Interpreter(model_content=builder.to_bytes())
    interpreter.allocate_tensors()
    with pytest.raises(UnresolvedOpError) as caught:
        interpreter.get_signature_runner("branch")(c=np.array([True]), x=ONES)
    assert caught.value.ops == ("Nobodys", "FlexOther")
    assert re.search(r"Select TensorFlow op\(s\).*FlexOther", str(caught.value))
    assert interpreter.get_signature_runner("first")(x=ONES)["y"].tolist() == [-1, -1]


def test_branches_that_nobody_serves_stop_the_model_when_the_first_subgraph_calls_them() -> None:
    interpreter = Interpreter(model_content=branching("NEG", "Nobodys", "branch").to_bytes())
    with pytest.raises(UnresolvedOpError, match="Nobodys"):
        interpreter.allocate_tensors()


def test_the_application_may_serve_one_signature_s_ops() -> None:
    builder = ModelBuilder()
    one_op(builder, "Mine", "mine")
    one_op(builder, "Nobodys", "nobodys")
    ops = MutableOpResolver()
    ops.add_custom("Mine", Registration(invoke=lambda context, node: np.copyto(node.outputs[0].data, node.inputs[0].data + 1)))
    interpreter = Interpreter(model_content=builder.to_bytes(), op_resolver=ops)
    assert interpreter.get_signature_runner("mine")(x=ONES)["y"].tolist() == [2, 2]


def test_a_delegate_on_what_can_run_does_not_mind_the_rest() -> None:
    pytest.importorskip("oplet_example_delegate")
    builder = ModelBuilder()
    one_op(builder, "NEG", "infer")
    one_op(builder, "Nobodys", "save")
    interpreter = Interpreter(model_content=builder.to_bytes(), experimental_delegates=[load_delegate("example")])
    interpreter.allocate_tensors()
    assert interpreter.get_signature_runner("infer")(x=ONES)["y"].tolist() == [-1, -1]
    with pytest.raises(UnresolvedOpError, match="Nobodys"):
        interpreter.get_signature_runner("save")(x=ONES)


def test_a_built_in_operator_that_a_signature_needs_and_nobody_serves_is_refused_when_opening_as_in_litert() -> None:
    builder = ModelBuilder()
    one_op(builder, "NEG", "infer")
    one_op(builder, "CONCAT_EMBEDDINGS", "old")
    with pytest.raises(OpNotFoundError, match="CONCAT_EMBEDDINGS"):
        Interpreter(model_content=builder.to_bytes())
