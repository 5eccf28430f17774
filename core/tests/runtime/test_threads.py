"""One interpreter serves one thread at a time; a second one is told so, and what the first one does stays right."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from core.tests.chains import F32, like_input

from oplet import Context, Interpreter, MutableOpResolver, Node, Registration
from oplet.errors import StateError
from oplet_testing import Graph, Op, Spec, graph_model

SAID = r"in use by another thread \('first'\): one interpreter serves one thread at a time"


class Gate:
    """A custom op that waits in the middle of its work until it is let through."""

    def __init__(self, where: str) -> None:
        self.entered, self.opened = threading.Event(), threading.Event()
        self.where = where

    def pass_through(self, where: str) -> None:
        if where == self.where and threading.current_thread().name == "first":
            self.entered.set()
            assert self.opened.wait(600)

    def registration(self) -> Registration:
        def prepare(context: Context, node: Node) -> None:
            like_input(context, node)
            self.pass_through("prepare")

        def invoke(context: Context, node: Node) -> None:
            np.add(node.inputs[0].data, F32(1), node.outputs[0].data)
            self.pass_through("invoke")

        return Registration(prepare=prepare, invoke=invoke)


def model() -> bytes:
    graph = Graph(dict.fromkeys("xy", Spec(F32, [-1])), "x", "y", [Op("Gate", "x", "y")])
    return graph_model(graph, signatures={"serving_default": 0})


def interpreter_with(gate: Gate) -> Interpreter:
    ops = MutableOpResolver()
    ops.add_custom("Gate", gate.registration())
    return Interpreter(model_content=model(), op_resolver=ops, plugins=[])


@contextmanager
def busy(gate: Gate, work: Callable[[], Any]) -> Iterator[list[Any]]:
    """Another thread in the middle of its work; what it came to is there afterwards."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(work()), name="first")
    thread.start()
    try:
        end = time.monotonic() + 600
        while not gate.entered.wait(0.02) and thread.is_alive() and time.monotonic() < end:
            pass  # nobody waits for a thread that ended without its work
        assert gate.entered.is_set()
        yield results
    finally:
        gate.opened.set()
        thread.join()


def second_thread(interpreter: Interpreter) -> dict[str, Callable[[], Any]]:
    return {
        "invoke": interpreter.invoke,
        "runner": lambda: interpreter.get_signature_runner()(x=np.zeros(2, F32)),
        "set_tensor": lambda: interpreter.set_tensor(0, np.full(3, 9, F32)),
        "get_tensor": lambda: interpreter.get_tensor(1),
        "resize": lambda: interpreter.resize_tensor_input(0, [5]),
        "allocate": interpreter.allocate_tensors,
        "reset": interpreter.reset_all_variables,
        "release": interpreter.release_non_persistent_memory,
        "close": interpreter.close,
    }


@pytest.mark.parametrize("what", list(second_thread(interpreter_with(Gate("")))))
@pytest.mark.parametrize("meanwhile", ["invoke", "allocate", "runner"])
def test_a_second_thread_is_told_that_the_interpreter_is_in_use(what: str, meanwhile: str) -> None:
    gate = Gate("prepare" if meanwhile == "allocate" else "invoke")
    interpreter = interpreter_with(gate)
    if meanwhile == "invoke":
        interpreter.resize_tensor_input(0, [3])
        interpreter.allocate_tensors()
        interpreter.set_tensor(0, np.ones(3, F32))
    work = {
        "invoke": interpreter.invoke,
        "allocate": interpreter.allocate_tensors,
        "runner": lambda: interpreter.get_signature_runner()(x=np.ones(3, F32))["y"].tolist(),
    }
    with busy(gate, work[meanwhile]) as results, pytest.raises(StateError, match=SAID):
        second_thread(interpreter)[what]()
    assert len(results) == 1
    if meanwhile == "invoke":
        assert interpreter.get_tensor(1).tolist() == [2, 2, 2]
    elif meanwhile == "runner":
        assert results == [[2, 2, 2]]


def test_another_thread_may_go_on_when_the_first_one_is_done_and_may_always_cancel() -> None:
    gate = Gate("")
    interpreter = interpreter_with(gate)
    for _ in range(2):
        answers: list[Any] = []
        thread = threading.Thread(target=lambda: answers.append(interpreter.get_signature_runner()(x=np.ones(2, F32))["y"]))  # noqa: B023
        thread.start()
        thread.join()
        assert answers[0].tolist() == [2, 2]
    interpreter.cancel()
    assert interpreter.get_signature_runner()(x=np.ones(2, F32))["y"].tolist() == [2, 2]


def test_a_failed_run_lets_go_of_the_interpreter() -> None:
    interpreter = interpreter_with(Gate(""))
    with pytest.raises(ValueError):
        interpreter.get_signature_runner()(x=np.ones(2, np.int8))
    failed: list[Any] = []
    thread = threading.Thread(target=lambda: failed.append(interpreter.get_signature_runner()(x=np.ones(2, F32))))
    thread.start()
    thread.join()
    assert failed[0]["y"].tolist() == [2, 2]


def test_one_interpreter_for_each_thread_gives_each_its_own_answers() -> None:
    wrong: list[Any] = []

    def work(number: int) -> None:
        interpreter = interpreter_with(Gate(""))
        for size in (3, 5, 3):
            value = np.full(size, number, F32)
            if (interpreter.get_signature_runner()(x=value)["y"] != value + 1).any():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
