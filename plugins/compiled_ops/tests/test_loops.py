"""Loops of compiled kernels: one call of machine code, which answers, ends, fails and is stopped as rounds of Python are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from core.tests.chains import cancelling

from oplet import Interpreter, Limits, Profiler
from oplet.errors import CancelledError, InvokeError, LimitError
from oplet.schema.options import (
    AddOptions,
    GatherOptions,
    IfOptions,
    LessOptions,
    MulOptions,
    PackOptions,
    SliceOptions,
    WhileOptions,
)
from oplet_testing import invoke
from oplet_testing.graphs import Graph, Op, graph_model
from oplet_testing.one_op import Spec

I = Spec("int32", [])  # noqa: E741
X = Spec("float32", [1, 3])
ROWS = Spec("float32", [4, 3])
ONE = np.array(1, np.int32)
START = np.array(0, np.int32)
NEXT = Op("ADD", "i one", "j", AddOptions())
A = np.array([[1, -2, 3]], np.float32)
#: What a row is taken by: each by a position that only the run knows.
GATHER = [Op("GATHER", "rows i", "row", GatherOptions(axis=0))]
SLICE = [Op("PACK", "i zero", "begin", PackOptions(values_count=2)), Op("SLICE", "rows begin size", "row", SliceOptions())]


def condition(**more: Spec) -> Graph:
    """i < n; n is a loop variable, so that values decide how many rounds there are."""
    tensors = {"i": I, "n": I, **more, "c": Spec("bool", [])}
    return Graph(tensors, " ".join(["i", "n", *more]), "c", [Op("LESS", "i n", "c", LessOptions())], "condition")


def loop(test: Graph, body: Graph, *more: Graph, **variables: Spec) -> bytes:
    """A model of one loop over i, n and the variables."""
    specs = {"i": I, "n": I, **variables}
    tensors = {**specs, **{f"{name}_out": spec for name, spec in specs.items()}}
    inputs, outputs = " ".join(specs), " ".join(f"{name}_out" for name in specs)
    options = WhileOptions(cond_subgraph_index=1, body_subgraph_index=2)
    return graph_model(Graph(tensors, inputs, outputs, [Op("WHILE", inputs, outputs, options)], "main"), test, body, *more)


def scan(taking: list[Op]) -> bytes:
    """state = state * row + row, over the rows of a table."""
    tensors: dict[str, Any] = {
        "i": I, "n": I, "state": X, "rows": ROWS, "one": ONE, "zero": START, "size": np.array([1, 3], np.int32), "j": I,
        "begin": Spec("int32", [2]), "row": Spec("float32", [3]) if taking is GATHER else X, "product": X, "sum": X,
    }  # fmt: skip
    used = {name for op in taking for name in op.inputs.split() + op.outputs.split()} | {
        "i",
        "n",
        "state",
        "rows",
        "one",
        "j",
        "product",
        "sum",
        "row",
    }
    body = Graph(
        {name: spec for name, spec in tensors.items() if name in used},
        "i n state rows",
        "j n sum rows",
        [NEXT, *taking, Op("MUL", "state row", "product", MulOptions()), Op("ADD", "product row", "sum", AddOptions())],
        "body",
    )
    return loop(condition(state=X, rows=ROWS), body, state=X, rows=ROWS)


def table(rows: int = 4) -> Any:
    return np.random.default_rng(rows).standard_normal((rows, 3)).astype(np.float32)


def expected(count: int, rows: Any, state: Any = A) -> Any:
    for row in rows[: max(count, 0)]:
        state = state * row + row
    return state


def runs_whole(interpreter: Interpreter) -> bool:
    """Whether the loop of an interpreter runs in machine code."""
    return interpreter._subgraphs[0].segments[0].thunks[0]._rounds is not None  # type: ignore[attr-defined]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("taking", [GATHER, SLICE], ids=["gather", "slice"])
def test_a_loop_gives_the_same_bits_as_rounds_of_numpy_and_as_litert_however_many_rounds_it_has(
    taking: list[Op], threads: int
) -> None:
    model = scan(taking)
    interpreter = Interpreter(model_content=model, num_threads=threads)
    numpy_alone = Interpreter(model_content=model, plugins=["builtin_ops"])
    litert = pytest.importorskip("ai_edge_litert.interpreter").Interpreter(model_content=model)
    for count in (4, 4, 0, 3, -1, 1, 4):
        values = START, np.array(count, np.int32), A, table()
        found = invoke(interpreter, *values)
        np.testing.assert_array_equal(found[2], expected(count, table()))
        for one, other in zip(found, invoke(numpy_alone, *values), strict=True):
            np.testing.assert_array_equal(one, other)
        litert.allocate_tensors()
        for details, value in zip(litert.get_input_details(), values, strict=True):
            litert.set_tensor(details["index"], value)
        litert.invoke()
        np.testing.assert_allclose(litert.get_tensor(litert.get_output_details()[2]["index"]), found[2], rtol=1e-6)
    assert runs_whole(interpreter)


@pytest.mark.parametrize("taking", [GATHER, SLICE], ids=["gather", "slice"])
def test_a_position_out_of_bounds_is_the_error_of_its_node_and_the_loop_runs_again(taking: list[Op]) -> None:
    messages = []
    for plugins in (["builtin_ops"], ["builtin_ops", "compiled_ops"]):
        interpreter = Interpreter(model_content=scan(taking), plugins=plugins)
        for count in (4, 4, 5, 4, 7):
            values = START, np.array(count, np.int32), A, table()
            if count == 4:
                np.testing.assert_array_equal(invoke(interpreter, *values)[2], expected(4, table()))
                continue
            with pytest.raises(InvokeError) as caught:
                invoke(interpreter, *values)
            messages.append(str(caught.value).replace("oplet-compiled-ops", "oplet-builtin-ops"))
    assert messages[: len(messages) // 2] == messages[len(messages) // 2 :]
    with pytest.raises(InvokeError, match="position -1 is outside" if taking is GATHER else r"begin \[-1, 0\]"):
        invoke(interpreter, np.array(-1, np.int32), np.array(2, np.int32), A, table())


def test_a_loop_is_made_anew_after_a_resize() -> None:
    interpreter = Interpreter(model_content=scan(GATHER))
    for length in (4, 9, 1, 4):
        interpreter.resize_tensor_input(3, (length, 3))
        interpreter.allocate_tensors()
        for _ in range(3):
            values = START, np.array(length, np.int32), A, table(length)
            np.testing.assert_array_equal(invoke(interpreter, *values)[2], expected(length, table(length)))
        assert runs_whole(interpreter)


def counting(**limits: Any) -> Interpreter:
    """A loop that only counts, up to n."""
    body = Graph({"i": I, "n": I, "one": ONE, "j": I}, "i n", "j n", [NEXT], "body")
    return Interpreter(model_content=loop(condition(), body), limits=Limits(**limits))


def test_limits_of_rounds_and_of_calls_hold_as_they_do_for_rounds_of_python() -> None:
    for limits in ({"max_while_iterations": 10}, {"max_subgraph_calls": 19}):
        interpreter = counting(**limits)
        for count in (9, 9, 9, 10, 9, 50):
            if count == 9:
                assert invoke(interpreter, START, np.array(9, np.int32))[0] == 9
            else:
                with pytest.raises(LimitError):
                    invoke(interpreter, START, np.array(count, np.int32))
        assert runs_whole(interpreter)


def test_a_long_loop_is_cancelled_while_it_runs() -> None:
    interpreter = counting(max_while_iterations=None, max_subgraph_calls=None)
    for _ in range(3):
        invoke(interpreter, START, np.array(5, np.int32))
    with cancelling(interpreter), pytest.raises(CancelledError):
        invoke(interpreter, START, np.array(2**31 - 1, np.int32))
    assert invoke(interpreter, START, np.array(5, np.int32))[0] == 5


def test_a_profiler_and_a_deadline_see_every_round() -> None:
    profiler = Profiler()
    body = Graph({"i": I, "n": I, "one": ONE, "j": I}, "i n", "j n", [NEXT], "body")
    interpreter = Interpreter(model_content=loop(condition(), body), profiler=profiler)
    for _ in range(3):
        invoke(interpreter, START, np.array(5, np.int32))
    assert [event.op for event in profiler.events].count("ADD") == 15
    limited = counting(max_seconds=30.0)
    for _ in range(3):
        assert invoke(limited, START, np.array(5, np.int32))[0] == 5
    assert not runs_whole(limited)


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_variables_that_change_places_do_so_at_once(count: int) -> None:
    body = Graph({"i": I, "n": I, "a": X, "b": X, "one": ONE, "j": I}, "i n a b", "j n b a", [NEXT], "body")
    interpreter = Interpreter(model_content=loop(condition(a=X, b=X), body, a=X, b=X))
    for _ in range(3):
        _, _, a, b = invoke(interpreter, START, np.array(count, np.int32), A, 10 * A)
        np.testing.assert_array_equal(a, 10 * A if count % 2 else A)
        np.testing.assert_array_equal(b, A if count % 2 else 10 * A)
    assert runs_whole(interpreter) == (count > 0)  # a body that has never run is not joined


def test_loops_in_loops_and_branches_in_loops_answer_as_numpy_does() -> None:
    tensors: dict[str, Any] = {"i": I, "n": I, "a": X, "one": ONE, "zero": START, "j": I, "k": I, "m": I, "b": X}
    inner = Graph(
        {"i": I, "n": I, "a": X, "one": ONE, "j": I, "b": X}, "i n a", "j n b", [NEXT, Op("ADD", "a a", "b", AddOptions())]
    )
    nested = Op("WHILE", "zero n a", "k m b", WhileOptions(cond_subgraph_index=1, body_subgraph_index=3))
    model = loop(condition(a=X), Graph(tensors, "i n a", "j n b", [NEXT, nested], "body"), inner, a=X)
    branch = Op("IF", "c a", "b", IfOptions(then_subgraph_index=3, else_subgraph_index=4))
    tensors = {"i": I, "n": I, "a": X, "one": ONE, "c": Spec("bool", []), "j": I, "b": X}
    choosing = Graph(tensors, "i n a", "j n b", [NEXT, Op("LESS", "i one", "c", LessOptions()), branch], "body")
    twice = Graph({"a": X, "b": X}, "a", "b", [Op("ADD", "a a", "b", AddOptions())])
    square = Graph({"a": X, "b": X}, "a", "b", [Op("MUL", "a a", "b", MulOptions())])
    for content in (model, loop(condition(a=X), choosing, twice, square, a=X)):
        compiled, numpy_alone = Interpreter(model_content=content), Interpreter(model_content=content, plugins=["builtin_ops"])
        for count in (2, 3, 0, 2):
            values = START, np.array(count, np.int32), A
            for one, other in zip(invoke(compiled, *values), invoke(numpy_alone, *values), strict=True):
                np.testing.assert_array_equal(one, other)


def test_two_loops_with_the_same_subgraphs_keep_their_values_apart() -> None:
    body = Graph(
        {"i": I, "n": I, "a": X, "one": ONE, "j": I, "b": X}, "i n a", "j n b", [NEXT, Op("ADD", "a a", "b", AddOptions())]
    )
    options = WhileOptions(cond_subgraph_index=1, body_subgraph_index=2)
    specs: dict[str, Any] = {"i": I, "n": I, "a": X, "p": I, "q": I, "b": X, "r": I, "s": I, "c": X, "zero": START}
    ops = [Op("WHILE", "i n a", "p q b", options), Op("WHILE", "zero n b", "r s c", options)]
    model = graph_model(Graph(specs, "i n a", "b c", ops, "main"), condition(a=X), body)
    interpreter = Interpreter(model_content=model)
    for _ in range(4):
        b, c = invoke(interpreter, START, np.array(3, np.int32), A)
        np.testing.assert_array_equal(b, 8 * A)
        np.testing.assert_array_equal(c, 64 * A)
