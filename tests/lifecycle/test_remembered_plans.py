"""An interpreter that is dropped leaves its bound plan to the next one of the same model, which nothing can tell from a new one."""

from __future__ import annotations

import gc
import os
import time
import weakref
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from oplet import Interpreter, Limits, ModelBuilder, MutableOpResolver, Registration, decline
from oplet.errors import StateError, TensorError
from oplet.model import reading
from oplet.plugins.manager import PluginManager
from oplet.runtime.memory import remembered

NUMPY = PluginManager(block=["oplet-compiled-ops"])
SIDE = 24


def model(seed: int = 0, *, variable: bool = False, rows: int = 3) -> bytes:
    """A layer with weights of halves and an activation; the shape of its input is free."""
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    halves = np.random.default_rng(seed).standard_normal((SIDE, SIDE)).astype(np.float16)
    x = graph.add_tensor("x", "float32", (rows, SIDE))
    h = graph.add_tensor("h", "float16", (SIDE, SIDE), data=halves)
    w = graph.add_tensor("w", "float32", (SIDE, SIDE))
    y, z = (graph.add_tensor(name, "float32", (rows, SIDE)) for name in "yz")
    if variable:
        graph.add_tensor("state", "float32", (1,), is_variable=True)
    graph.add_operator("DEQUANTIZE", [h], [w])
    graph.add_operator("FULLY_CONNECTED", [x, w, -1], [y])
    graph.add_operator("LOGISTIC", [y], [z])
    graph.set_inputs(x)
    graph.set_outputs(z)
    return builder.to_bytes()


@pytest.fixture(autouse=True)
def no_plans(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Files count as settled, however new they are, and no plan is left from or to other tests."""
    monkeypatch.setattr(reading, "_is_settled", lambda status: True)
    gc.collect()  # interpreters of other tests that are still in cycles would leave theirs later
    remembered.forget_plans()
    yield
    remembered.forget_plans()


def opened(content: Any, **settings: Any) -> Interpreter:
    given = {"model_path": os.fspath(content)} if isinstance(content, Path) else {"model_content": content}
    return Interpreter(**{**given, "plugins": NUMPY, **settings})


def answer(interpreter: Interpreter, seed: int = 0, rows: int = 3) -> Any:
    interpreter.set_tensor(0, np.random.default_rng(seed).standard_normal((rows, SIDE)).astype(np.float32))
    interpreter.invoke()
    return interpreter.get_tensor(4)


def ran(content: Any, **settings: Any) -> Any:
    interpreter = opened(content, **settings)
    interpreter.allocate_tensors()
    return answer(interpreter)


def arena(interpreter: Interpreter) -> Any:
    return interpreter._subgraphs[0].segments[0].arena


def test_the_next_interpreter_of_the_same_bytes_has_the_arena_and_the_answers_of_the_dropped_one() -> None:
    content = model()
    expected = ran(content)
    [kept] = remembered._plans.values()
    left = kept.subgraph.segments[0].arena
    for _ in range(3):
        interpreter = opened(content)
        interpreter.allocate_tensors()
        assert arena(interpreter) is left
        assert not remembered._plans
        assert not interpreter.get_tensor(0).any()
        assert not interpreter.get_tensor(4).any()
        np.testing.assert_array_equal(answer(interpreter), expected)
        assert (answer(interpreter, seed=1) != expected).any()
        del interpreter


class _Looked(SimpleNamespace):
    """A plan that, whenever its age or size is looked at, ends an interpreter, as Python's collector may at any time."""

    @property
    def since(self) -> float:
        self.ending[-1:] = []
        return time.monotonic()

    @property
    def nbytes(self) -> int:
        self.ending[-1:] = []
        return 0

    def discard(self) -> None:
        pass


@pytest.mark.parametrize("look", ["take", "leave"])
def test_interpreters_may_end_while_plans_are_looked_through(look: str) -> None:
    another = opened(model())
    another.allocate_tensors()
    ending = [opened(model()) for _ in range(6)]
    for interpreter in ending:
        interpreter.allocate_tensors()
    del interpreter
    for name in "ab":
        remembered._plans[name] = _Looked(ending=ending)  # type: ignore[assignment]
    if look == "take":
        ran(model())
    del another
    assert not ending
    assert len(remembered._plans) > 6


def test_an_interpreter_has_no_values_before_it_allocates() -> None:
    content = model()
    ran(content)
    interpreter = opened(content)
    with pytest.raises(TensorError):
        interpreter.get_tensor(4)
    with pytest.raises(StateError):
        interpreter.invoke()


def test_two_interpreters_at_a_time_have_memory_of_their_own() -> None:
    content = model()
    expected = ran(content)
    a, b = opened(content), opened(content)
    a.allocate_tensors()
    b.allocate_tensors()
    first = answer(a)
    second = answer(b, seed=1)
    np.testing.assert_array_equal(first, expected)
    np.testing.assert_array_equal(a.get_tensor(4), expected)
    assert (second != expected).any()


def test_a_plan_that_was_taken_over_can_be_resized_and_left_again() -> None:
    content = model()
    expected = ran(content)
    interpreter = opened(content)
    interpreter.allocate_tensors()
    interpreter.resize_tensor_input(0, [5, SIDE])
    interpreter.allocate_tensors()
    assert answer(interpreter, rows=5).shape == (5, SIDE)
    interpreter.resize_tensor_input(0, [3, SIDE])
    interpreter.allocate_tensors()
    np.testing.assert_array_equal(answer(interpreter), expected)
    interpreter.resize_tensor_input(0, [5, SIDE])
    interpreter.allocate_tensors()
    del interpreter
    assert len(remembered._plans) == 1
    np.testing.assert_array_equal(ran(content), expected)  # of the file's shape again, which the plan left behind is not


def test_a_resize_before_allocating_takes_no_plan() -> None:
    content = model()
    ran(content)
    interpreter = opened(content)
    interpreter.resize_tensor_input(0, [5, SIDE])
    interpreter.allocate_tensors()
    assert answer(interpreter, rows=5).shape == (5, SIDE)


@pytest.mark.parametrize(
    "settings",
    [
        {"experimental_preserve_all_tensors": True},
        {"num_threads": 2},
        {"limits": Limits(max_arena_bytes=1 << 20)},
        {"plugins": ["oplet-builtin-ops"]},
        {"checks": True},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_an_interpreter_of_other_settings_prepares_its_own(settings: dict[str, Any]) -> None:
    content = model()
    ran(content)
    [kept] = remembered._plans.values()
    interpreter = opened(content, **settings)
    interpreter.allocate_tensors()
    assert arena(interpreter) is not kept.subgraph.segments[0].arena


def test_other_bytes_and_bytes_that_may_change_have_their_own() -> None:
    content = model()
    expected = ran(content)
    assert (ran(model(1)) != expected).any()
    remembered.forget_plans()
    ran(bytearray(content))
    assert not remembered._plans


def test_a_file_that_was_written_anew_or_in_place_has_its_own(tmp_path: Path) -> None:
    path, other = tmp_path / "model.tflite", tmp_path / "other.tflite"
    path.write_bytes(model())
    first = ran(path)
    assert len(remembered._plans) == 1
    other.write_bytes(model(1))
    os.replace(other, path)
    second = ran(path)
    np.testing.assert_array_equal(second, ran(model(1)))
    assert (second != first).any()
    path.write_bytes(model(2))
    np.testing.assert_array_equal(ran(path), ran(model(2)))


def test_a_closed_interpreter_frees_its_memory_describes_its_model_and_touches_no_memory_of_the_next() -> None:
    content = model()
    expected = ran(content)
    closed = opened(content)
    closed.allocate_tensors()
    before = closed.get_tensor_details(), closed._get_ops_details(), closed.explain()
    memory = weakref.ref(arena(closed))
    closed.close()
    closed.close()
    assert memory() is None
    assert not remembered._plans
    following = opened(content)
    following.allocate_tensors()
    np.testing.assert_array_equal(answer(following), expected)
    assert str((closed.get_tensor_details(), closed._get_ops_details(), closed.explain())) == str(before)
    for refused in (
        closed.allocate_tensors,
        closed.invoke,
        partial(closed.get_tensor, 4),
        partial(closed.set_tensor, 0, np.ones((3, SIDE), np.float32)),
        closed.tensor(0),
    ):
        with pytest.raises((StateError, TensorError)):
            refused()
    closed.reset_all_variables()
    closed.release_non_persistent_memory()
    np.testing.assert_array_equal(following.get_tensor(4), expected)
    del closed
    np.testing.assert_array_equal(answer(following), expected)


def test_a_forgotten_plan_is_freed_however_often_it_was_taken_over() -> None:
    content = model()
    for _ in range(3):
        interpreter = opened(content)
        interpreter.allocate_tensors()
        memory = weakref.ref(arena(interpreter))
        del interpreter
    assert memory() is not None
    remembered.forget_plans()
    gc.collect()
    assert memory() is None


def test_an_interpreter_whose_node_a_kernel_declines_is_freed_without_garbage_collection() -> None:
    def refuse(context: Any, node: Any) -> None:
        decline("another serves it.")

    own = MutableOpResolver()
    own.add_builtin("LOGISTIC", Registration(prepare=refuse, invoke=lambda context, node: None))
    interpreter = opened(model(), op_resolver=own)
    interpreter.allocate_tensors()
    freed = weakref.ref(interpreter)
    gc.disable()
    try:
        del interpreter
        assert freed() is None
    finally:
        gc.enable()


def test_old_plans_and_more_than_a_few_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    contents = [model(seed) for seed in range(12)]
    for content in contents:
        ran(content)
    assert len(remembered._plans) == remembered._MOST
    monkeypatch.setattr(remembered, "_SECONDS", -1.0)
    opened(contents[-1]).allocate_tensors()
    assert len(remembered._plans) <= 1
    monkeypatch.setattr(remembered, "_MOST_BYTES", 100)
    remembered.forget_plans()
    ran(contents[0])
    assert not remembered._plans


def test_a_model_with_variables_and_views_that_are_still_held_leave_no_plan() -> None:
    content = model(variable=True)
    ran(content)
    assert not remembered._plans
    content = model()
    interpreter = opened(content)
    interpreter.allocate_tensors()
    view = interpreter.tensor(4)()
    del interpreter
    assert not remembered._plans
    assert view.shape == (3, SIDE)


def test_tables_of_a_model_that_was_verified_before_are_not_those_that_a_program_may_change() -> None:
    content = model()
    ran(content)
    interpreter = opened(content)
    root = interpreter._model.root
    root.subgraphs[0].tensors[0].name = "another"
    root.subgraphs[0].operators.pop()
    assert opened(content).get_tensor_details()[0]["name"] == "x"
    np.testing.assert_array_equal(ran(content), ran(model()))
