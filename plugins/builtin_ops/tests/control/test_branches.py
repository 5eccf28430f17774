"""IF, STABLEHLO_CASE, STABLEHLO_COMPOSITE and CALL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oplet import Interpreter
from oplet.errors import PrepareError
from oplet.schema.options import AddOptions, CallOptions, ConcatenationOptions, IfOptions, MulOptions
from oplet.schema.stablehlo_options import StablehloCaseOptions, StableHLOCompositeOptions
from oplet_testing import run_op
from oplet_testing.graphs import Graph, Op, graph_model
from oplet_testing.one_op import Spec

X = Spec("float32", [2])
INDEX = Spec("int32", [])
A = np.array([1, 2], np.float32)

NEGATED = Graph({"a": X, "y": X}, "a", "y", [Op("NEG", "a", "y")], "negated")
TWICE = Graph({"a": X, "y": X}, "a", "y", [Op("CONCATENATION", "a a", "y", ConcatenationOptions())], "twice")
SAME = Graph({"a": X}, "a", "a", name="same")
FIXED = Graph({"a": X, "k": np.array([7, 8], np.float32)}, "a", "k", name="fixed")
BRANCHES = {"negated": NEGATED, "twice": TWICE, "same": SAME, "fixed": FIXED}
EXPECTED = {"negated": [-1, -2], "twice": [1, 2, 1, 2], "same": [1, 2], "fixed": [7, 8]}


def if_model(then: Graph, otherwise: Graph) -> bytes:
    """The branch's output, times two: a node behind it must follow its shape."""
    main = Graph(
        {"c": Spec("bool", []), "a": X, "t": X, "y": X},
        "c a",
        "y",
        [Op("IF", "c a", "t", IfOptions(then_subgraph_index=1, else_subgraph_index=2)), Op("ADD", "t t", "y", AddOptions())],
    )
    return graph_model(main, then, otherwise)


@pytest.mark.parametrize("otherwise", BRANCHES)
@pytest.mark.parametrize("then", BRANCHES)
def test_if_runs_the_branch_of_its_condition(then: str, otherwise: str, litert: Callable[..., Any]) -> None:
    model = if_model(BRANCHES[then], BRANCHES[otherwise])
    for condition, name in ((True, then), (False, otherwise), (True, then)):
        feeds = np.array(condition), A
        (output,) = run_op(model, *feeds)
        assert output.tolist() == [2 * value for value in EXPECTED[name]]
        assert output.tolist() == litert(model, *feeds)[0].tolist()


def test_branches_of_different_shapes_may_alternate() -> None:
    runner = Interpreter(model_content=if_model(NEGATED, TWICE))
    runner.resize_tensor_input(1, [3])
    runner.allocate_tensors()
    runner.set_tensor(1, np.ones(3, np.float32))
    for condition in (True, False, False, True):
        runner.set_tensor(0, np.array(condition))
        runner.invoke()
        assert runner.get_tensor(3).tolist() == ([-2] * 3 if condition else [2] * 6)


@pytest.mark.parametrize(("index", "branch"), [(0, 2), (1, 1), (2, 3), (3, 3), (-1, 3), (-(2**31), 3)])
def test_case_takes_the_last_branch_for_numbers_that_no_branch_has(index: int, branch: int, litert: Callable[..., Any]) -> None:
    options = StablehloCaseOptions(branch_subgraph_indices=np.array([2, 1, 3], np.int32))
    main = Graph({"i": INDEX, "a": X, "y": X}, "i a", "y", [Op("STABLEHLO_CASE", "i a", "y", options)])
    model = graph_model(main, NEGATED, SAME, FIXED)
    feeds = np.array(index, np.int32), A
    (output,) = run_op(model, *feeds)
    assert output.tolist() == EXPECTED[["", "negated", "same", "fixed"][branch]]
    (theirs,) = litert(model, *feeds, kernels="BUILTIN_WITHOUT_DEFAULT_DELEGATES")  # the reference kernels lack this op
    assert output.tolist() == theirs.tolist()


@pytest.mark.parametrize("op", ["STABLEHLO_COMPOSITE", "CALL"])
@pytest.mark.parametrize("branch", BRANCHES)
def test_a_call_gives_what_its_subgraph_gives(op: str, branch: str) -> None:
    options: Any = CallOptions(subgraph=1)
    if op == "STABLEHLO_COMPOSITE":
        options = StableHLOCompositeOptions(name="x", decomposition_subgraph_index=1, composite_attributes=np.zeros(1, np.uint8))
    model = graph_model(Graph({"a": X, "y": X}, "a", "y", [Op(op, "a", "y", options)]), BRANCHES[branch])
    assert run_op(model, A)[0].tolist() == EXPECTED[branch]


def test_one_subgraph_serves_callers_of_different_shapes() -> None:
    square = Graph({"a": X, "y": X}, "a", "y", [Op("MUL", "a a", "y", MulOptions())])
    main = Graph(
        {"a": X, "b": Spec("float32", [3]), "y": X, "z": Spec("float32", [3])},
        "a b",
        "y z",
        [Op("CALL", "a", "y", CallOptions(subgraph=1)), Op("CALL", "b", "z", CallOptions(subgraph=1))],
    )
    outputs = run_op(graph_model(main, square), A, np.array([3, 4, 5], np.float32))
    assert [output.tolist() for output in outputs] == [[1, 4], [9, 16, 25]]


PAIR = Graph({"a": X, "b": X}, "a b", "a", name="pair")
BYTES = Graph({"a": X, "k": np.zeros(2, np.int8)}, "a", "k", name="bytes")


@pytest.mark.parametrize(
    ("then", "otherwise", "reason"),
    [
        (SAME, PAIR, "the else subgraph 2 'pair' takes 2 inputs, the node hands it 1"),
        (Graph({"a": X}, "a", "", name="none"), SAME, "the then subgraph 1 'none' gives 0 outputs, the node takes 1"),
        (SAME, BYTES, "output 0 is of type FLOAT32, subgraph 2 'bytes' gives INT8 there"),
    ],
)
def test_subgraphs_that_do_not_fit_the_node_are_refused(then: Graph, otherwise: Graph, reason: str) -> None:
    with pytest.raises(PrepareError, match=reason):
        run_op(if_model(then, otherwise), np.array(True), A)


def test_a_condition_is_one_boolean() -> None:
    for spec, reason in ((Spec("int32", []), "takes BOOL here"), (Spec("bool", [2]), "has 2 values; IF takes one")):
        main = Graph(
            {"c": spec, "a": X, "y": X},
            "c a",
            "y",
            [Op("IF", "c a", "y", IfOptions(then_subgraph_index=1, else_subgraph_index=2))],
        )
        with pytest.raises(PrepareError, match=reason):
            Interpreter(model_content=graph_model(main, SAME, NEGATED)).allocate_tensors()


def test_a_case_without_branches_is_refused() -> None:
    main = Graph({"i": INDEX, "a": X, "y": X}, "i a", "y", [Op("STABLEHLO_CASE", "i a", "y", StablehloCaseOptions())])
    with pytest.raises(PrepareError, match="branch_subgraph_indices is empty"):
        Interpreter(model_content=graph_model(main, SAME)).allocate_tensors()
