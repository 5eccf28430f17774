"""What outlives a node's run counts against the limits from when it is kept until it is dropped."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from oplet import Interpreter, Limits, MutableOpResolver, Registration
from oplet.errors import DeadlineError, LimitError
from oplet.kernels.limits import Kept, foresee, kept_array, kept_copy, listed, paced
from oplet_testing import one_op_model
from oplet_testing.one_op import Spec

_LIMITS = Limits(max_arena_bytes=10_000_000)
_MANY = np.zeros(4_000_000, np.uint8)


@pytest.fixture(name="run")
def _run() -> Iterator[Callable[[Callable[[], Any]], None]]:
    """A function that runs another one as the kernel of a model with little memory, the same in each call."""
    given: list[Callable[[], Any]] = []
    resolver = MutableOpResolver()
    resolver.add_custom("Keeper", Registration(bind=lambda context, node: lambda: given[-1]()))
    model = one_op_model("Keeper", [Spec("float32", [1])], [Spec("float32", [1])])
    interpreter = Interpreter(model_content=model, limits=_LIMITS, op_resolver=resolver)
    interpreter.allocate_tensors()

    def run(function: Callable[[], Any]) -> None:
        given.append(function)
        interpreter.invoke()

    yield run
    given.clear()


def test_what_is_kept_in_one_run_counts_in_the_next(run: Callable[[Any], None]) -> None:
    held: list[Any] = []
    for _ in range(2):
        run(lambda: held.append(kept_copy(_MANY)))
    with pytest.raises(LimitError, match="keeps between nodes"):
        run(lambda: held.append(kept_copy(_MANY)))
    assert len(held) == 2


def test_what_is_dropped_counts_no_longer(run: Callable[[Any], None]) -> None:
    for _ in range(20):
        run(lambda: kept_copy(_MANY))


def test_what_there_is_no_memory_for_counts_no_longer(run: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(array: Any) -> None:
        raise MemoryError

    monkeypatch.setattr("oplet.kernels.limits.np", SimpleNamespace(array=fail))
    for _ in range(5):
        with pytest.raises(LimitError, match="memory"):
            run(lambda: kept_copy(_MANY))
    monkeypatch.undo()
    run(lambda: kept_copy(_MANY))


def test_an_array_counts_as_long_as_a_view_of_it_is_there(run: Callable[[Any], None]) -> None:
    held: list[Any] = []
    run(lambda: held.append(kept_array(_MANY.copy())[:1]))
    run(lambda: held.append(kept_array(_MANY.copy())[:1]))
    with pytest.raises(LimitError):
        run(lambda: kept_copy(_MANY))
    del held[0]
    run(lambda: kept_copy(_MANY))


def test_strings_count_as_often_as_they_are_referred_to(run: Callable[[Any], None]) -> None:
    strings = np.full(100, b"a" * 200_000, object)
    with pytest.raises(LimitError):
        run(lambda: kept_copy(strings))


def test_what_grows_and_shrinks_counts_with_what_it_is(run: Callable[[Any], None]) -> None:
    held: list[Kept] = []
    run(lambda: held.append(Kept(6_000_000)))
    with pytest.raises(LimitError):
        run(lambda: held[0].add(6_000_000))
    run(lambda: held[0].add(-5_000_000))
    run(lambda: held[0].add(6_000_000))
    assert held[0].nbytes == 7_000_000


def test_what_a_collection_of_garbage_drops_is_subtracted(run: Callable[[Any], None]) -> None:
    def circle() -> None:
        a: list[Any] = [kept_copy(_MANY)]
        a.append(a)

    gc.disable()
    try:
        run(circle)
        run(circle)
        with pytest.raises(LimitError):
            run(circle)
        gc.collect()
        run(circle)
    finally:
        gc.enable()


def test_outside_of_a_run_nothing_is_counted() -> None:
    assert Kept(1 << 62).nbytes == 0
    assert kept_copy(_MANY).nbytes == _MANY.nbytes


def test_a_list_of_numbers_is_charged_before_it_is_made(run: Callable[[Any], None]) -> None:
    run(lambda: listed(_MANY[:200_000]))
    with pytest.raises(LimitError):
        run(lambda: listed(_MANY[:300_000]))


def test_a_paced_loop_ends_where_the_run_is_to_end() -> None:
    resolver, seen = MutableOpResolver(), []

    def endless() -> Iterator[int]:
        while True:
            yield 0

    def kernel() -> None:
        for _ in paced(endless()):
            if not seen:
                seen.append(interpreter.cancel())

    resolver.add_custom("Keeper", Registration(bind=lambda context, node: kernel))
    model = one_op_model("Keeper", [Spec("float32", [1])], [Spec("float32", [1])])
    interpreter = Interpreter(model_content=model, op_resolver=resolver)
    interpreter.allocate_tensors()
    with pytest.raises(RuntimeError, match="cancel"):
        interpreter.invoke()


def test_a_paced_loop_yields_every_item() -> None:
    assert list(paced(range(1000), 7)) == list(range(1000))
    assert list(paced([])) == []


def test_a_call_that_would_be_late_is_not_begun() -> None:
    begun: list[float] = []

    def kernel() -> None:
        foresee(0.1)
        begun.append(0.1)
        foresee(100.0)
        begun.append(100.0)

    resolver = MutableOpResolver()
    resolver.add_custom("Keeper", Registration(bind=lambda context, node: kernel))
    model = one_op_model("Keeper", [Spec("float32", [1])], [Spec("float32", [1])])
    interpreter = Interpreter(model_content=model, op_resolver=resolver, limits=Limits(max_seconds=50.0))
    interpreter.allocate_tensors()
    with pytest.raises(DeadlineError, match="about 100.0 seconds"):
        interpreter.invoke()
    assert begun == [0.1]
    free = Interpreter(model_content=model, op_resolver=resolver)
    free.allocate_tensors()
    free.invoke()
    assert begun == [0.1, 0.1, 100.0]
