"""The garbage collector is left as it was found: by imports, by interpreters, and by whatever fails in them."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from types import ModuleType

import numpy as np
import pytest
from core.tests.chains import add_one, adding, like_input

import oplet
from oplet import Context, Interpreter, MutableOpResolver, Node, Registration
from oplet.collector import collecting_rarely
from oplet.errors import ModelError

USUAL = (700, 10, 10)


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    """The collector of a new process, in which nothing is frozen."""
    before, was_frozen = gc.get_threshold(), gc.get_freeze_count() > 0
    gc.unfreeze()
    gc.set_threshold(*USUAL)
    yield
    gc.enable()
    gc.set_threshold(*before)
    if was_frozen:
        gc.freeze()


def within(inside: Callable[[], object]) -> tuple[int, ...]:
    """Return the thresholds after a function that calls `inside`, and within it first has the collector wait."""

    @collecting_rarely
    def function() -> None:
        assert gc.get_threshold()[0] > 100_000
        inside()

    function()
    return gc.get_threshold()


def test_the_thresholds_are_put_back() -> None:
    assert within(int) == USUAL
    with pytest.raises(ZeroDivisionError):
        within(lambda: 1 / 0)
    assert gc.get_threshold() == USUAL
    assert within(lambda: within(int)) == USUAL


def test_what_somebody_sets_meanwhile_stays() -> None:
    assert within(lambda: gc.set_threshold(9, 8, 7)) == (9, 8, 7)
    gc.set_threshold(*USUAL)
    within(gc.disable)
    assert not gc.isenabled()
    within(gc.enable)
    assert gc.isenabled()


@pytest.mark.parametrize("own", [(0, 10, 10), (1 << 24, 10, 10)])
def test_a_collector_that_runs_as_rarely_is_left_alone(own: tuple[int, int, int]) -> None:
    gc.set_threshold(*own)
    assert collecting_rarely(gc.get_threshold)() == own
    assert gc.get_threshold() == own


def test_threads_that_overlap_leave_the_thresholds_that_the_first_found() -> None:
    entered, first_left = threading.Event(), threading.Event()

    @collecting_rarely
    def last() -> None:
        entered.set()
        first_left.wait(60)

    thread = threading.Thread(target=last)

    def start() -> None:
        thread.start()
        entered.wait(60)

    assert within(start) == USUAL
    first_left.set()
    thread.join()
    assert gc.get_threshold() == USUAL


class Made:
    """An object that the collector follows."""

    def __init__(self) -> None:
        self.self = self


@pytest.mark.parametrize("imports", [False, True])
def test_what_is_made_while_modules_are_imported_is_old_and_not_frozen(monkeypatch: pytest.MonkeyPatch, imports: bool) -> None:
    gc.disable()

    @collecting_rarely
    def make() -> Made:
        if imports:
            monkeypatch.setitem(sys.modules, "oplet_new", ModuleType("oplet_new"))
        return Made()

    made = make()
    assert gc.get_freeze_count() == 0
    assert any(each is made for each in gc.get_objects(generation=0)) is not imports


def test_what_a_program_has_frozen_stays_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    gc.freeze()
    frozen = gc.get_freeze_count()
    within(lambda: monkeypatch.setitem(sys.modules, "oplet_new", ModuleType("oplet_new")))
    assert gc.get_freeze_count() > frozen // 2


def test_what_is_frozen_is_found_once_and_not_counted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []
    monkeypatch.setattr(gc, "get_freeze_count", lambda: counted.append(1) or len(counted) - 1)
    load = collecting_rarely(lambda name: monkeypatch.setitem(sys.modules, name, ModuleType(name)))
    for place in range(9):
        load(f"oplet_new_{place}")
    assert len(counted) == 2


def test_names_and_interpreters_collect_rarely_while_they_are_made_and_leave_the_thresholds() -> None:
    seen: list[int] = []

    def prepare(context: Context, node: Node) -> None:
        seen.append(gc.get_threshold()[0])
        like_input(context, node)

    def invoke(context: Context, node: Node) -> None:
        seen.append(gc.get_threshold()[0])
        add_one(context, node)

    vars(oplet).pop("Interpreter")
    assert oplet.Interpreter is Interpreter
    ops = MutableOpResolver()
    ops.add_custom("AddOne", Registration(prepare=prepare, invoke=invoke))
    interpreter = Interpreter(model_content=adding(1), op_resolver=ops, plugins=[])
    interpreter.allocate_tensors()
    assert gc.get_threshold() == USUAL
    interpreter.set_tensor(0, np.ones(3, np.float32))
    interpreter.invoke()
    prepared, invoked = seen
    assert prepared > 100_000
    assert invoked == USUAL[0]
    with pytest.raises(ModelError):
        Interpreter(model_content=b"no model")
    assert gc.get_threshold() == USUAL
