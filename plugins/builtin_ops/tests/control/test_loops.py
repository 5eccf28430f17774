"""WHILE and STABLEHLO_WHILE."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oplet import Interpreter
from oplet.errors import LimitError, PrepareError
from oplet.schema.options import AddOptions, ConcatenationOptions, LessOptions, WhileOptions
from oplet.schema.stablehlo_options import StablehloWhileOptions
from oplet_testing import run_op
from oplet_testing.graphs import Graph, Op, graph_model
from oplet_testing.one_op import Spec

I = Spec("int32", [])  # noqa: E741
X = Spec("float32", [2])
ONE = np.array(1, np.int32)
NEXT = Op("ADD", "i one", "j", AddOptions())
A = np.array([1, 2], np.float32)
START = np.array(0, np.int32)


def until(limit: int, **more: Spec) -> Graph:
    """The condition i < limit; it is handed the other loop variables too."""
    tensors = {"i": I, **more, "limit": np.array(limit, np.int32), "c": Spec("bool", [])}
    return Graph(tensors, " ".join(["i", *more]), "c", [Op("LESS", "i limit", "c", LessOptions())], "condition")


def loop(condition: Graph, body: Graph, *more: Graph, op: str = "WHILE", **variables: Spec) -> bytes:
    """A model of one loop over i and the variables."""
    names = list(variables)
    tensors = {"i": I, **variables, "i_out": I, **{f"{name}_out": spec for name, spec in variables.items()}}
    options: Any = (WhileOptions if op == "WHILE" else StablehloWhileOptions)(cond_subgraph_index=1, body_subgraph_index=2)
    inputs, outputs = " ".join(["i", *names]), " ".join(["i_out", *(f"{name}_out" for name in names)])
    return graph_model(Graph(tensors, inputs, outputs, [Op(op, inputs, outputs, options)], "main"), condition, body, *more)


DOUBLING = Graph({"i": I, "a": X, "one": ONE, "j": I, "b": X}, "i a", "j b", [NEXT, Op("ADD", "a a", "b", AddOptions())], "body")
GROWING = DOUBLING._replace(ops=[NEXT, Op("CONCATENATION", "a a", "b", ConcatenationOptions())])


@pytest.mark.parametrize("op", ["WHILE", "STABLEHLO_WHILE"])
@pytest.mark.parametrize("limit", [-1, 0, 1, 5])
def test_a_loop_runs_its_body_while_the_condition_holds(op: str, limit: int) -> None:
    count, value = run_op(loop(until(limit, a=X), DOUBLING, op=op, a=X), START, A)
    assert (int(count), value.tolist()) == (max(limit, 0), [2.0 ** max(limit, 0), 2 * 2.0 ** max(limit, 0)])


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_a_loop_variable_may_grow(limit: int, litert: Callable[..., Any]) -> None:
    model = loop(until(limit, a=X), GROWING, a=X)
    runner = Interpreter(model_content=model)
    runner.allocate_tensors()
    for _ in range(2):
        runner.set_tensor(0, START)
        runner.set_tensor(1, A)
        runner.invoke()
        value = runner.get_tensor(runner.get_output_details()[1]["index"])
        np.testing.assert_array_equal(value, np.tile(A, 2**limit))
        np.testing.assert_array_equal(value, litert(model, START, A)[1])


@pytest.mark.parametrize("limit", [0, 1, 2, 3])
@pytest.mark.parametrize("grows", [False, True])
def test_variables_that_change_places_do_so_at_once(limit: int, grows: bool) -> None:
    # LiteRT overwrites one with the other here.
    tensors: dict[str, Any] = {"i": I, "a": X, "b": X, "g": X, "one": ONE, "j": I, "h": X}
    ops = [NEXT, Op("CONCATENATION", "g g", "h", ConcatenationOptions())] if grows else [NEXT, Op("NEG", "g", "h")]
    body = Graph(tensors, "i a b g", "j b a h", ops)
    _, a, b, g = run_op(loop(until(limit, a=X, b=X, g=X), body, a=X, b=X, g=X), START, A, A + 10, A)
    first, second = (A + 10, A) if limit % 2 else (A, A + 10)
    assert (a.tolist(), b.tolist()) == (first.tolist(), second.tolist())
    assert g.tolist() == (np.tile(A, 2**limit) if grows else A * (-1) ** limit).tolist()


def test_a_variable_that_the_body_hands_through_stays() -> None:
    body = Graph({"i": I, "a": X, "one": ONE, "j": I}, "i a", "j a", [NEXT])
    count, value = run_op(loop(until(4, a=X), body, a=X), START, A)
    assert (int(count), value.tolist()) == (4, [1, 2])


@pytest.mark.parametrize("inner", [DOUBLING, GROWING])
def test_loops_nest_and_may_share_a_condition(inner: Graph) -> None:
    nested = Op("WHILE", "zero a", "k b", WhileOptions(cond_subgraph_index=1, body_subgraph_index=3))
    body = Graph({"i": I, "a": X, "one": ONE, "zero": START, "j": I, "k": I, "b": X}, "i a", "j b", [NEXT, nested])
    _, value = run_op(loop(until(2, a=X), body, inner, a=X), START, A)
    np.testing.assert_array_equal(value, A * 16 if inner is DOUBLING else np.tile(A, 16))


def test_strings_can_be_looped_over() -> None:
    words = Spec("object", [1])
    body = Graph({"i": I, "s": words, "one": ONE, "j": I}, "i s", "j s", [NEXT])
    _, value = run_op(loop(until(3, s=words), body, s=words), START, np.array([b"word"], object))
    assert value.tolist() == [b"word"]


def test_a_loop_prepares_anew_when_its_inputs_are_resized() -> None:
    runner = Interpreter(model_content=loop(until(3, a=X), DOUBLING, a=X))
    for shape in ((2,), (3, 1), (0,), (2,)):
        runner.resize_tensor_input(1, shape)
        runner.allocate_tensors()
        runner.set_tensor(0, START)
        runner.set_tensor(1, np.ones(shape, np.float32))
        runner.invoke()
        np.testing.assert_array_equal(runner.get_tensor(3), np.full(shape, 8))


def test_a_loop_whose_condition_cannot_change_is_refused_at_once() -> None:
    always = Graph({"i": I, "a": X, "c": np.array(True)}, "i a", "c", name="always")
    with pytest.raises(LimitError, match="never ends: its condition, subgraph 1 'always', is true and depends on nothing"):
        run_op(loop(always, DOUBLING, a=X), START, A)


def test_a_loop_ends_at_the_limit() -> None:
    runner = Interpreter(model_content=loop(until(2**30, a=X), DOUBLING, a=X))
    runner._runtime.session.max_while_iterations = 1000
    runner.allocate_tensors()
    runner.set_tensor(0, START)
    with pytest.raises(
        LimitError, match=r"condition subgraph 1 'condition' and body subgraph 2 'body' did not end after 1000 it"
    ):
        runner.invoke()
    runner.set_tensor(0, np.array(2**30, np.int32))
    runner.invoke()
    assert runner.get_tensor(2) == 2**30


VECTOR = Graph({"i": I, "a": X, "c": np.array([True, False])}, "i a", "c", name="vector")
FLOAT = Graph({"i": I, "a": X}, "i a", "a", name="float")
HALF = Graph({"i": I, "a": X}, "i a", "i", name="half")
MIXED = Graph({"i": I, "a": X}, "i a", "a i", name="mixed")


@pytest.mark.parametrize(
    ("condition", "body", "reason"),
    [
        (VECTOR, DOUBLING, r"the condition subgraph 1 'vector' gives the shape \[2\]; it must be one value"),
        (FLOAT, DOUBLING, "the condition subgraph 1 'float' gives tensor 1 'a' .* must be of type BOOL"),
        (until(1), DOUBLING, "the condition subgraph 1 'condition' takes 1 inputs, the node hands it 2"),
        (until(1, a=X), HALF, "the body subgraph 2 'half' gives 1 outputs, the node takes 2"),
        (until(1, a=X), MIXED, "loop variable 0 is of type INT32; the body subgraph 2 'mixed' gives FLOAT32"),
    ],
)
def test_subgraphs_that_do_not_fit_the_loop_are_refused(condition: Graph, body: Graph, reason: str) -> None:
    with pytest.raises(PrepareError, match=reason):
        run_op(loop(condition, body, a=X), START, A)


def test_condition_and_body_cannot_be_the_same_subgraph() -> None:
    options = WhileOptions(cond_subgraph_index=1, body_subgraph_index=1)
    flag = Graph({"c": Spec("bool", [])}, "c", "c", name="flag")
    main = Graph({"c": Spec("bool", []), "y": Spec("bool", [])}, "c", "y", [Op("WHILE", "c", "y", options)])
    with pytest.raises(PrepareError, match="the condition and the body are both subgraph 1 'flag'"):
        run_op(graph_model(main, flag), np.array(True))
