"""Kernels that take long are stopped where they say that they can be."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from core.tests.chains import F32, adding, cancelling, interpret

from oplet import Context, Interpreter, Limits, MutableOpResolver, Node, Registration, TensorType, charge, checkpoint
from oplet.errors import CancelledError, DeadlineError, LimitError
from oplet.schema.options import SkipGramOptions
from oplet_testing import one_op_model
from oplet_testing.one_op import Spec

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


@pytest.mark.usefixtures("ticking")
def test_a_loop_ends_when_its_time_is_over() -> None:
    runner = interpreter(forever, 0.05)
    for _ in range(2):
        with pytest.raises(DeadlineError, match=r"max_seconds=0\.05"):
            runner.invoke()
    checkpoint()  # which concerns nobody any more


def test_a_loop_ends_when_another_thread_cancels_it() -> None:
    runner = interpreter(forever)
    with cancelling(runner), pytest.raises(CancelledError):
        runner.invoke()


@pytest.mark.usefixtures("ticking")
def test_a_run_inside_a_kernel_leaves_the_clock_of_the_run_around_it() -> None:
    inner = interpreter(once, 0.01)

    def outer(context: Context, node: Node) -> None:
        inner.invoke()
        forever(context, node)

    with pytest.raises(DeadlineError, match=r"max_seconds=0\.1"):
        interpreter(outer, 0.1).invoke()


@pytest.mark.usefixtures("ticking")
def test_skip_grams_without_number_end_in_time() -> None:
    words = np.array([b" ".join([b"w"] * 80)], object)
    options = SkipGramOptions(ngram_size=40, max_skip_size=1000, include_all_ngrams=False)
    model = one_op_model("SKIP_GRAM", [Spec(TensorType.STRING, [1])], [Spec(TensorType.STRING, [0])], options)
    runner = Interpreter(model_content=model, limits=Limits(max_seconds=0.1))
    runner.allocate_tensors()
    runner.set_tensor(0, words)
    with pytest.raises(DeadlineError):
        runner.invoke()


def charging(prepare: int = 0, bind: int = 0, invoke: int = 0, count: int = 1) -> Interpreter:
    """An interpreter of nodes in a row whose kernels take this much memory for themselves, where a million bytes are allowed."""
    resolver = MutableOpResolver()

    def bound(context: Context, node: Node) -> Callable[[], None]:
        charge(bind)
        return lambda: charge(invoke)

    resolver.add_custom("AddOne", Registration(prepare=lambda context, node: charge(prepare), bind=bound))
    limits = Limits(max_arena_bytes=1_000_000, max_seconds=60)
    return interpret(adding(count, Spec(F32, (1,), signature=(-1,))), op_resolver=resolver, limits=limits)


def test_what_kernels_take_for_themselves_counts_against_the_limit_for_all_nodes_together() -> None:
    assert charging(prepare=300_000, bind=300_000).allocate_tensors() is None
    with pytest.raises(LimitError, match=r"AddOne.* would take 300000 bytes besides its tensors.*max_arena_bytes=1000000"):
        charging(prepare=300_000, bind=300_000, count=2).allocate_tensors()


def test_what_is_prepared_again_is_counted_once() -> None:
    runner = charging(prepare=300_000, bind=300_000)
    for length in range(1, 9):
        runner.resize_tensor_input(0, [length])
        runner.allocate_tensors()


def test_what_nodes_take_while_they_run_is_given_back_after_them() -> None:
    runner = charging(invoke=600_000, count=3)
    runner.allocate_tensors()
    for _ in range(3):
        runner.invoke()
    greedy = charging(invoke=1_200_000)
    greedy.allocate_tensors()
    with pytest.raises(LimitError, match=r"1200000 bytes"):
        greedy.invoke()


def test_a_charge_outside_of_a_run_is_nobodys() -> None:
    charge(1 << 62)
