"""Joining: neighbouring nodes whose kernels allow it run as one step from the second run on, and nothing else changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from core.tests.chains import F32, answer, like_input

from oplet import Context, Interpreter, Limits, MutableOpResolver, Node, Profiler, Registration
from oplet.errors import CancelledError, InvokeError
from oplet.kernels.arrays import Copies, copier
from oplet_testing import Spec, chain_graph, graph_model


class Joiner:
    """Notes what it joins; copies are adopted, and do nothing but be counted where they are."""

    def __init__(self) -> None:
        self.lengths: list[int] = []
        self.touched: Sequence[Any] | None = None

    def adopt(self, thunk: Any) -> Any:
        return self.mark(lambda: thunk()) if type(thunk) is Copies else None

    def mark(self, thunk: Any) -> Any:
        thunk.joiner = self
        return thunk

    def join(self, thunks: Sequence[Callable[[], None]], touched: Sequence[Any] | None = None) -> Callable[[], None]:
        self.lengths.append(len(thunks))
        self.touched = touched
        every = tuple(thunks)

        def run() -> None:
            for thunk in every:
                thunk()

        return run


@pytest.fixture(autouse=True)
def busy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a node may seem to take long; only one test is about nodes that do."""
    if "take_long" not in request.node.name:
        monkeypatch.setattr("oplet.ops.serving.joining.LONGEST", 60.0)


def resolver(joiner: Joiner, seconds: float = 0.0) -> MutableOpResolver:
    def bind(context: Context, node: Node) -> Callable[[], None]:
        source, output = node.inputs[0].data, node.outputs[0].data

        def run() -> None:
            end = time.thread_time() + seconds
            while seconds and time.thread_time() < end:
                pass
            np.add(source, F32(1), output)

        return joiner.mark(run)  # type: ignore[no-any-return]

    def fail(context: Context, node: Node) -> None:
        if node.inputs[0].data[0] < 0:
            raise ValueError("a number below zero")
        node.outputs[0].data[...] = node.inputs[0].data

    ops = MutableOpResolver()
    ops.add_custom("Joins", Registration(prepare=like_input, bind=bind))
    ops.add_custom("Copies", Registration(prepare=like_input, bind=lambda c, n: copier(n.outputs[0].data, n.inputs[0].data)))
    ops.add_custom("Alone", Registration(prepare=like_input, invoke=fail))
    return ops


def interpreter(ops: Sequence[str], joiner: Joiner, seconds: float = 0.0, **arguments: Any) -> Interpreter:
    model = graph_model(chain_graph(list(ops), Spec(F32, [3])))
    return Interpreter(model_content=model, op_resolver=resolver(joiner, seconds), plugins=[], **arguments)


def test_neighbours_are_joined_after_the_first_run_and_answer_the_same() -> None:
    joiner = Joiner()
    chain = interpreter(["Joins", "Joins", "Alone", "Joins", "Copies", "Joins", "Alone"], joiner)
    assert answer(chain) == [5, 6, 7]
    assert joiner.lengths == []
    assert answer(chain, [7, 8, 9]) == [11, 12, 13]
    assert answer(chain, [0, 0, 0]) == [4, 4, 4]
    assert joiner.lengths == [2, 3]


def test_without_a_kernel_that_joins_copies_stay_what_they_are() -> None:
    joiner = Joiner()
    chain = interpreter(["Copies", "Alone", "Copies", "Copies"], joiner)
    assert [answer(chain, [i, 0, 0]) for i in range(3)] == [[0, 0, 0], [1, 0, 0], [2, 0, 0]]
    assert joiner.lengths == []


def test_an_error_behind_joined_nodes_names_its_node() -> None:
    chain = interpreter(["Joins", "Joins", "Alone", "Joins"], Joiner())
    for _ in range(3):
        answer(chain)
        with pytest.raises(InvokeError, match=r"a number below zero\. Node number 2 \(Alone\)"):
            answer(chain, [-9, 0, 0])


def test_a_profiler_sees_every_node_and_may_come_and_go() -> None:
    profiler = Profiler(enabled=False)
    chain = interpreter(["Joins", "Copies", "Joins", "Alone"], Joiner(), profiler=profiler)
    for _ in range(3):
        answer(chain)
    profiler.enabled = True
    assert answer(chain) == [3, 4, 5]
    assert [event.node for event in profiler.events] == [0, 1, 2, 3]
    profiler.enabled = False
    assert answer(chain, [4, 4, 4]) == [6, 6, 6]
    assert len(profiler.events) == 4


def test_nodes_that_take_long_stay_steps_of_their_own_so_that_a_run_can_be_stopped_between_them() -> None:
    joiner = Joiner()
    chain = interpreter(["Joins"] * 4, joiner, seconds=0.004)
    assert answer(chain) == answer(chain) == [5, 6, 7]
    assert joiner.lengths == []


def test_a_run_of_joined_nodes_is_cancelled_behind_the_step_that_it_is_in() -> None:
    joiner = Joiner()
    model = graph_model(chain_graph(["Joins", "Joins", "Cancels", "Joins"], Spec(F32, [3])))
    ops = resolver(joiner)
    wanted = []

    def cancel(context: Context, node: Node) -> None:
        node.outputs[0].data[...] = node.inputs[0].data
        if wanted:
            chain.cancel()

    ops.add_custom("Cancels", Registration(prepare=like_input, invoke=cancel))
    chain = Interpreter(model_content=model, op_resolver=ops, plugins=[])
    assert answer(chain) == answer(chain) == [4, 5, 6]
    wanted.append(True)
    with pytest.raises(CancelledError):
        answer(chain)
    wanted.clear()
    assert answer(chain) == [4, 5, 6]


def test_a_resize_and_a_deadline_take_the_nodes_one_by_one_again() -> None:
    joiner = Joiner()
    chain = interpreter(["Joins", "Joins"], joiner)
    for values in ([1, 2, 3], [1, 2, 3, 4, 5], [1, 2, 3], [7]):
        for _ in range(2):
            assert answer(chain, values) == [value + 2 for value in values]
    assert joiner.lengths == [2] * 4
    timed = interpreter(["Joins", "Joins"], joiner, limits=Limits(max_seconds=60))
    assert answer(timed) == answer(timed) == [3, 4, 5]
    assert joiner.lengths == [2] * 4


def test_a_joiner_learns_for_several_threads_which_memory_each_node_touches() -> None:
    for threads in (1, 2):
        joiner = Joiner()
        chain = interpreter(["Joins"] * 3, joiner, num_threads=threads)
        assert answer(chain) == answer(chain) == [4, 5, 6]
        if threads == 1:
            assert joiner.touched is None
            continue
        assert joiner.touched is not None
        first, second, third = joiner.touched
        assert [end - start for work in joiner.touched for start, end in (*work.reads, *work.writes)] == [12] * 6
        assert first.writes == second.reads
        assert second.writes == third.reads
        assert first.writes != second.writes
