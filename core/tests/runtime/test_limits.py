"""Limits: what a model may take, and how a run is stopped; the interpreter is usable afterwards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from core.tests.chains import F32, answer, cancelling, like_input

from oplet import Interpreter, Limits, ModelBuilder, MutableOpResolver, Registration
from oplet.errors import CancelledError, DeadlineError, LimitError
from oplet.schema.options import CallOnceOptions, WhileOptions
from oplet_testing import Spec, chain_graph, graph_model

ONES = np.ones(4, F32)


def chain(length: int, op: str = "RELU", size: int = 4) -> bytes:
    return graph_model(chain_graph([op] * length, Spec(F32, [size])))


def test_a_model_of_too_many_nodes_is_refused_before_anything_is_made_of_them() -> None:
    with pytest.raises(LimitError, match=r"has 5 nodes; Limits\(max_nodes=4\)"):
        Interpreter(model_content=chain(5), limits=Limits(max_nodes=4))
    Interpreter(model_content=chain(5), limits=Limits(max_nodes=5))


def test_a_tensor_that_is_too_large_is_refused_by_name() -> None:
    interpreter = Interpreter(model_content=chain(1, size=1024), limits=Limits(max_tensor_bytes=4095))
    with pytest.raises(LimitError, match=r"tensor [01] 't[01]' .* takes 4096 bytes; Limits\(max_tensor_bytes=4095\)"):
        interpreter.allocate_tensors()


def test_the_arenas_of_all_subgraphs_count_together() -> None:
    interpreter = Interpreter(model_content=chain(3, size=1024), limits=Limits(max_arena_bytes=8_000))
    with pytest.raises(LimitError, match=r"would take \d+ bytes; Limits\(max_arena_bytes=8000\)"):
        interpreter.allocate_tensors()
    interpreter.resize_tensor_input(0, [4])
    interpreter.allocate_tensors()
    assert answer(interpreter, ONES) == [1, 1, 1, 1]


def test_memory_outside_the_arenas_counts_too_and_is_counted_once_over_many_resizes() -> None:
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    dims, value = graph.add_tensor("dims", np.int32, [1]), graph.add_tensor("value", F32, [], data=F32(1))
    out = graph.add_tensor("out", F32, [0])
    graph.add_operator("FILL", [dims, value], [out])
    graph.set_inputs(dims)
    graph.set_outputs(out)
    interpreter = Interpreter(model_content=builder.to_bytes(), limits=Limits(max_arena_bytes=10_000))
    interpreter.allocate_tensors()
    for count in [1000, 2000, 500] * 20:
        interpreter.set_tensor(0, np.array([count], np.int32))
        interpreter.invoke()
    interpreter.set_tensor(0, np.array([3000], np.int32))
    with pytest.raises(LimitError, match="max_arena_bytes=10000"):
        interpreter.invoke()


def loop(never_ends: bool = True) -> bytes:
    """WHILE x < limit: x + 1, from x = 0; the limit is out of reach, or 3."""
    builder = ModelBuilder()
    main, condition, body = (builder.add_subgraph(name) for name in ("main", "condition", "body"))
    x, y = main.add_tensor("x", F32, [4]), main.add_tensor("y", F32, [4])
    main.add_operator("WHILE", [x], [y], WhileOptions(cond_subgraph_index=1, body_subgraph_index=2))
    main.set_inputs(x)
    main.set_outputs(y)
    cx, limit = condition.add_tensor("x", F32, [4]), condition.add_tensor("limit", F32, [], data=F32(1e9 if never_ends else 3))
    all_of, axis = (
        condition.add_tensor("all", np.bool_, [4]),
        condition.add_tensor("axis", np.int32, [1], data=np.zeros(1, np.int32)),
    )
    go = condition.add_tensor("go", np.bool_, [])
    condition.add_operator("LESS", [cx, limit], [all_of])
    condition.add_operator("REDUCE_ALL", [all_of, axis], [go])
    condition.set_inputs(cx)
    condition.set_outputs(go)
    bx, one, by = (
        body.add_tensor("x", F32, [4]),
        body.add_tensor("one", F32, [], data=F32(1e-6 if never_ends else 1)),
        body.add_tensor("y", F32, [4]),
    )
    body.add_operator("ADD", [bx, one], [by])
    body.set_inputs(bx)
    body.set_outputs(by)
    return builder.to_bytes()


@pytest.mark.usefixtures("ticking")
def test_a_deadline_ends_an_endless_loop_and_the_interpreter_stays_usable() -> None:
    interpreter = Interpreter(model_content=loop(), limits=Limits(max_seconds=0.2))
    interpreter.allocate_tensors()
    for _ in range(2):
        with pytest.raises(DeadlineError, match=r"Limits\(max_seconds=0.2\)"):
            answer(interpreter, ONES)  # it would never end by itself
    quick = Interpreter(model_content=loop(never_ends=False), limits=Limits(max_seconds=60))
    quick.allocate_tensors()
    assert answer(quick, ONES) == [3, 3, 3, 3]


def test_another_thread_can_cancel_a_run() -> None:
    interpreter = Interpreter(model_content=loop())
    interpreter.allocate_tensors()
    with cancelling(interpreter), pytest.raises(CancelledError, match="Client requested cancel during Invoke"):
        answer(interpreter, ONES)


def test_cancelling_while_nothing_runs_changes_nothing() -> None:
    interpreter = Interpreter(model_content=chain(3))
    interpreter.allocate_tensors()
    interpreter.cancel()
    assert answer(interpreter, ONES) == [1, 1, 1, 1]


def test_a_run_is_stopped_between_two_nodes() -> None:
    ran: list[int] = []
    ops = MutableOpResolver()

    def invoke(context: Any, node: Any) -> None:
        ran.append(node.index)
        if node.index == 1:
            interpreter.cancel()

    ops.add_custom("Note", Registration(prepare=like_input, invoke=invoke))
    interpreter = Interpreter(model_content=chain(4, "Note"), op_resolver=ops)
    interpreter.allocate_tensors()
    with pytest.raises(CancelledError):
        answer(interpreter, ONES)
    assert ran == [0, 1]


def test_loops_have_a_limit_of_their_own() -> None:
    interpreter = Interpreter(model_content=loop(), limits=Limits(max_while_iterations=100))
    interpreter.allocate_tensors()
    with pytest.raises(LimitError, match="did not end after 100 iterations"):
        answer(interpreter, ONES)


def test_calls_of_subgraphs_have_a_limit() -> None:
    interpreter = Interpreter(model_content=loop(), limits=Limits(max_subgraph_calls=50))
    interpreter.allocate_tensors()
    with pytest.raises(LimitError, match=r"called 50 times in one run .*max_subgraph_calls=50"):
        answer(interpreter, ONES)


def test_calls_have_a_limit_of_depth() -> None:
    builder = ModelBuilder()
    for level in range(6):
        graph = builder.add_subgraph(f"level {level}")
        if level < 5:
            graph.add_operator("CALL_ONCE", [], [], CallOnceOptions(init_subgraph_index=level + 1))
        graph.set_inputs()
        graph.set_outputs()
    content = builder.to_bytes()
    with pytest.raises(LimitError, match=r"max_call_depth=3\) allows no more"):
        Interpreter(model_content=content, limits=Limits(max_call_depth=3)).allocate_tensors()
    Interpreter(model_content=content, limits=Limits(max_call_depth=10)).allocate_tensors()


@pytest.mark.parametrize("name", ["max_arena_bytes", "max_nodes", "max_seconds"])
@pytest.mark.parametrize("value", [0, -1, "1", True, float("nan")])
def test_a_limit_that_makes_no_sense_is_refused(name: str, value: Any) -> None:
    with pytest.raises(LimitError, match=f"The limit {name} is "):
        Limits(**{name: value})


def test_no_limit_at_all_is_possible() -> None:
    interpreter = Interpreter(model_content=loop(never_ends=False), limits=Limits(None, None, None, None, None, None, None))
    interpreter.allocate_tensors()
    assert answer(interpreter, ONES) == [3, 3, 3, 3]
