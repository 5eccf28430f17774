"""Kernels that take long are stopped where they say that they can be."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest

from oplet import Context, Interpreter, Limits, MutableOpResolver, Node, Registration, TensorType, checkpoint
from oplet.errors import CancelledError, DeadlineError
from oplet.schema.options import SkipGramOptions
from oplet.testing import one_op_model
from oplet.testing.one_op import Spec

X = Spec("float32", [1])


def interpreter(invoke: Callable[[Context, Node], None], seconds: float | None = None) -> Interpreter:
    """An interpreter of one node that does this."""
    resolver = MutableOpResolver()
    resolver.add_custom("Loop", Registration(invoke=invoke))
    made = Interpreter(model_content=one_op_model("Loop", [X], [X]), op_resolver=resolver, limits=Limits(max_seconds=seconds))
    made.allocate_tensors()
    return made


def forever(context: Context, node: Node) -> None:
    while True:
        checkpoint()


def once(context: Context, node: Node) -> None:
    checkpoint()


def test_outside_of_a_run_nothing_happens() -> None:
    checkpoint()


def test_a_loop_ends_when_its_time_is_over() -> None:
    runner = interpreter(forever, 0.05)
    for _ in range(2):
        with pytest.raises(DeadlineError, match=r"max_seconds=0\.05"):
            runner.invoke()
    checkpoint()  # which concerns nobody any more


def test_a_loop_ends_when_another_thread_cancels_it() -> None:
    runner = interpreter(forever)
    timer = threading.Timer(0.05, runner.cancel)
    timer.start()
    with pytest.raises(CancelledError):
        runner.invoke()
    timer.join()


def test_a_run_inside_a_kernel_leaves_the_clock_of_the_run_around_it() -> None:
    inner = interpreter(once, 0.01)

    def outer(context: Context, node: Node) -> None:
        inner.invoke()
        forever(context, node)

    with pytest.raises(DeadlineError, match=r"max_seconds=0\.1"):
        interpreter(outer, 0.1).invoke()


def test_skip_grams_without_number_end_in_time() -> None:
    words = np.array([b" ".join([b"w"] * 80)], object)
    options = SkipGramOptions(ngram_size=40, max_skip_size=1000, include_all_ngrams=False)
    model = one_op_model("SKIP_GRAM", [Spec(TensorType.STRING, [1])], [Spec(TensorType.STRING, [0])], options)
    runner = Interpreter(model_content=model, limits=Limits(max_seconds=0.1))
    runner.allocate_tensors()
    runner.set_tensor(0, words)
    with pytest.raises(DeadlineError):
        runner.invoke()
