"""Graphs of jobs: nodes that run side by side on several threads answer as they do one after the other, also where they share memory."""

from __future__ import annotations

import gc
import itertools
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budgets import examples

from oplet import Interpreter, ModelBuilder
from oplet.schema.options import AddOptions, Conv2DOptions
from oplet_compiled_ops.threads import team
from oplet_compiled_ops.threads.graphs import Task, Work, tasks
from oplet_testing import invoke

CELLS = 12
_SPAN = st.tuples(st.integers(0, CELLS - 1), st.integers(1, 3)).map(lambda span: (span[0], min(CELLS, span[0] + span[1])))
_SPANS = st.lists(_SPAN, max_size=2)
#: For each thunk what it reads, what it writes, and of each of its jobs whether several threads share it.
_THUNKS = st.lists(st.tuples(_SPANS, _SPANS, st.lists(st.booleans(), max_size=2)), max_size=12)


def made(thunks: list[tuple[Any, Any, list[bool]]]) -> list[Work]:
    numbers = itertools.count(1)
    return [Work([next(numbers) for _ in shared], shared, reads, writes) for reads, writes, shared in thunks]


def ran(works: list[Work], order: list[int]) -> list[int]:
    """A memory after jobs, each of which writes a mixture of its number and of all that its thunk reads and writes."""
    memory = [0] * CELLS
    thunk_of = {job: work for work in works for job in work.jobs}
    for job in order:
        work = thunk_of[job]
        seen = [memory[start:end] for start, end in (*work.reads, *work.writes)]
        for number, (start, end) in enumerate(work.writes):
            for cell in range(start, end):
                memory[cell] = hash((job, number, cell, str(seen)))
    return memory


def some_order(found: list[Task], seed: int) -> list[int]:
    """The jobs in an order in which threads may come to them."""
    chance, done, order = random.Random(seed), set[int](), list[int]()
    while len(done) < len(found):
        free = [number for number, task in enumerate(found) if number not in done and done.issuperset(task.needs)]
        number = chance.choice(free)
        done.add(number)
        order += found[number].jobs
    return order


@given(_THUNKS, st.integers(0, 1000))
@settings(max_examples=examples(300), deadline=None)
def test_any_order_that_waits_for_what_is_needed_leaves_the_same_memory(thunks: list[Any], seed: int) -> None:
    works = made(thunks)
    found = tasks(works)
    if found is not None:
        assert all(needed < number for number, task in enumerate(found) for needed in task.needs)
        in_turn = [job for work in works for job in work.jobs]
        order = some_order(found, seed)
        assert sorted(order) == in_turn
        assert ran(works, order) == ran(works, in_turn)


def test_nodes_in_a_row_on_one_thread_are_not_made_a_graph() -> None:
    row = [([(number, number + 1)], [(number + 1, number + 2)], [False]) for number in range(8)]
    assert tasks(made(row)) is None
    assert tasks(made([])) is None
    assert tasks(made([([], [(0, 1)], [])] * 3)) is None


def test_branches_are_tasks_that_wait_for_nothing_of_each_other() -> None:
    touched: Any = [
        ([], [(0, 1)]),
        ([(0, 1)], [(1, 2)]),
        ([(0, 1)], [(2, 3)]),
        ([(1, 2)], [(3, 4)]),
        ([(2, 3)], [(4, 5)]),
        ([(3, 5)], [(5, 6)]),
    ]
    found = tasks(made([(*memory, [False]) for memory in touched]))
    assert found == [Task([1], False, []), Task([2, 4], False, [0]), Task([3, 5], False, [0]), Task([6], False, [1, 2])]


def test_a_node_waits_until_memory_that_it_writes_over_was_read() -> None:
    shared: Any = [([], [(0, 1)], [True]), ([(0, 1)], [(1, 2)], [True]), ([], [(0, 1)], [True])]
    assert tasks(made(shared)) == [Task([1], True, []), Task([2], True, [0]), Task([3], True, [1])]


def net(seed: int, nodes: int = 24) -> bytes:
    """A net of branches that part and join, of small layers and of ones that threads share; most tensors share memory with others."""
    chance = random.Random(seed)
    numbers = np.random.default_rng(seed)
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    names = itertools.count()

    def tensor(*shape: int, data: Any = None) -> int:
        return graph.add_tensor(f"t{next(names)}", np.float32, shape, data=data)

    def constant(*shape: int) -> int:
        return tensor(*shape, data=(numbers.standard_normal(shape) * 0.4).astype(np.float32))

    source = tensor(1, 16, 16, 16)
    graph.set_inputs(source)
    ends = [source]
    for _ in range(nodes):
        x = ends[chance.randrange(max(0, len(ends) - 4), len(ends))]
        y = tensor(1, 16, 16, 16)
        kind = chance.choice(["CONV_2D", "CONV_2D", "ADD", "LOGISTIC", "TANH"])
        if kind == "CONV_2D":
            side = chance.choice([1, 3])
            graph.add_operator(kind, [x, constant(16, side, side, 16), constant(16)], [y], Conv2DOptions(stride_w=1, stride_h=1))
        elif kind == "ADD":
            graph.add_operator(kind, [x, chance.choice(ends)], [y], AddOptions())
        else:
            graph.add_operator(kind, [x], [y])
        ends.append(y)
    graph.set_outputs(ends[-1], ends[-2])
    return builder.to_bytes()


def answers(interpreter: Interpreter, seed: int) -> list[Any]:
    return invoke(interpreter, np.random.default_rng(seed).standard_normal((1, 16, 16, 16)).astype(np.float32))


@pytest.mark.parametrize("seed", range(6))
def test_branches_answer_the_same_bits_on_any_number_of_threads(seed: int) -> None:
    model = net(seed)
    alone = Interpreter(model_content=model, num_threads=1)
    wanted = [answers(alone, 0), answers(alone, 1)]
    for threads in (2, 3, 5):
        interpreter = Interpreter(model_content=model, num_threads=threads)
        for number in range(60):
            for found, expected in zip(answers(interpreter, number % 2), wanted[number % 2]):
                np.testing.assert_array_equal(found, expected)
        [segment] = interpreter._subgraphs[0].segments
        assert segment.steps is not None
        assert any(getattr(step, "__name__", "") == "run_graph" for step in segment.steps[0])


@pytest.mark.sweep
def test_graphs_of_several_interpreters_share_the_helpers_and_disturb_nobody() -> None:
    models = [net(seed) for seed in range(3)]
    wanted = [answers(Interpreter(model_content=model, num_threads=1), 0) for model in models]
    stop = threading.Event()

    def come_and_go() -> None:
        while not stop.is_set():
            passing = Interpreter(model_content=models[0], num_threads=2)
            for _ in range(3):
                answers(passing, 1)
            del passing
            gc.collect()

    def work(number: int) -> None:
        interpreter = Interpreter(model_content=models[number], num_threads=3)
        for _ in range(60):
            for found, expected in zip(answers(interpreter, 0), wanted[number]):
                np.testing.assert_array_equal(found, expected)

    passing = threading.Thread(target=come_and_go)
    passing.start()
    try:
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(work, range(3)))
    finally:
        stop.set()
        passing.join()


def test_memory_of_graphs_is_used_again() -> None:
    def used() -> int:
        return sum(len(some) for some in crew._lists.values())

    crew = team._team()
    interpreter = Interpreter(model_content=net(1), num_threads=2)
    for _ in range(2):
        answers(interpreter, 0)
    del interpreter
    gc.collect()
    lists, jobs = used(), len(crew._free)
    assert lists
    for _ in range(3):
        interpreter = Interpreter(model_content=net(1), num_threads=2)
        for _ in range(2):
            answers(interpreter, 0)
        del interpreter
        gc.collect()
    assert used() == lists
    assert len(crew._free) == jobs
