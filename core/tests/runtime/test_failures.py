"""What packages raise is their failure; what is the program's own passes."""

from __future__ import annotations

import functools
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from oplet import Interpreter, MutableOpResolver, Registration
from oplet.errors import InvokeError, PrepareError, failures
from oplet_testing.one_op import Spec, one_op_model

X = Spec("float32", [2])
MODEL = one_op_model("Mine", [X], [X])


class Own(BaseException):
    """A program's."""


def interpreter_of(invoke: Callable[[], Any]) -> Interpreter:
    resolver = MutableOpResolver()
    resolver.add_custom(
        "Mine",
        Registration(prepare=lambda c, n: c.resize_tensor(n.outputs[0], [2]), invoke=lambda c, n: invoke()),
    )
    interpreter = Interpreter(model_content=MODEL, op_resolver=resolver)
    interpreter.allocate_tensors()
    return interpreter


class Handler:
    """A handler in one of the forms that Python takes, which fails in a function that it calls."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __call__(self, number: int, frame: object) -> None:
        self.method(number, frame)

    def method(self, number: int, frame: object) -> None:
        raise self.error


@pytest.fixture
def alarm() -> Iterator[int]:
    if not hasattr(signal, "SIGUSR1"):
        pytest.skip("no signals of the user's here")
    before = signal.getsignal(signal.SIGUSR1)
    yield signal.SIGUSR1
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("form", ["function", "method", "object"])
@pytest.mark.parametrize("error", [Own(), SystemExit(0), TimeoutError("late")])
def test_what_a_signal_handler_raises_passes_the_kernel_that_it_interrupts(alarm: int, form: str, error: BaseException) -> None:
    handler = Handler(error)

    def function(number: int, frame: object) -> None:
        handler(number, frame)

    signal.signal(alarm, {"function": function, "method": handler.method, "object": handler}[form])

    def invoke() -> None:
        os.kill(os.getpid(), alarm)
        for _ in range(1000):  # the handler runs between two steps of Python
            pass

    interpreter = interpreter_of(invoke)
    with pytest.raises(type(error)) as caught:
        interpreter.invoke()
    assert caught.value is error


@pytest.mark.parametrize("error", [Own(), SystemExit(0), GeneratorExit(), type("Stop", (KeyboardInterrupt,), {})()])
def test_what_a_kernel_raises_is_its_failure(error: BaseException) -> None:
    def invoke() -> None:
        raise error

    interpreter = interpreter_of(invoke)
    with pytest.raises(InvokeError, match=f"{type(error).__name__}.*failed to invoke in the kernel of") as caught:
        interpreter.invoke()
    assert caught.value.__cause__ is error


def test_an_interruption_by_the_user_passes() -> None:
    def invoke() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interpreter_of(invoke).invoke()


def test_exceptions_whose_text_fails_are_named_with_the_node() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise Own

    def invoke() -> None:
        raise Mute

    with pytest.raises(InvokeError, match=r"Mute \(which cannot say more: its __str__ raises Own\).*Node number 0 \(Mine\)"):
        interpreter_of(invoke).invoke()


def test_values_whose_conversion_fails_are_named() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise Own

    class Value:
        def __array__(self, *arguments: Any, **more: Any) -> Any:
            raise Mute

        def __len__(self) -> int:
            raise Own

    interpreter = interpreter_of(functools.partial(int))
    with pytest.raises(ValueError, match="Got a Value that is no array"):
        interpreter.set_tensor(0, Value())
    with pytest.raises((ValueError, PrepareError)):
        interpreter.resize_tensor_input(0, np.array(["x"]))


def test_nothing_is_caught_where_nothing_was_raised() -> None:
    assert failures() == ()


def test_a_failure_while_the_process_ends_is_caught_without_an_import(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "is_finalizing", lambda: True)
    monkeypatch.setattr(sys, "meta_path", None)
    monkeypatch.delitem(sys.modules, "signal")
    try:
        raise ValueError("too late")
    except failures() as error:
        caught = error
    assert str(caught) == "too late"
