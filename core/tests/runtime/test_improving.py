"""Improving: a node's thunk is replaced by a better one when it is there, in the middle of a model's life."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from core.tests.chains import F32, answer, like_input

from oplet import Context, Interpreter, Limits, MutableOpResolver, Node, Profiler, Registration
from oplet.errors import PrepareError
from oplet_testing import Spec, chain_graph, graph_model


class ForNow:
    """Adds 1 for the time being; the better thunk adds 2."""

    def __init__(self, kernel: Kernel, node: Node) -> None:
        self.kernel, self.source, self.output = kernel, node.inputs[0].data, node.outputs[0].data
        self.is_final = False

    def __call__(self) -> None:
        np.add(self.source, F32(1), self.output)

    def better(self, wait_for_it: bool = False) -> Callable[[], None] | None:
        self.kernel.asked += 1
        if self.kernel.error is not None:
            raise self.kernel.error
        if not (self.kernel.there or wait_for_it):
            return None
        self.is_final = True
        if self.kernel.never:
            return None

        def run() -> None:
            np.add(self.source, F32(2), self.output)

        return self.kernel.marked(run)


class Kernel:
    """What the test knows of its kernels, and a joiner of their better thunks."""

    def __init__(self) -> None:
        self.there = self.never = False
        self.error: Exception | None = None
        self.asked = 0
        self.joins: list[int] = []

    def marked(self, run: Any) -> Any:
        run.joiner = self
        return run

    def adopt(self, thunk: Any) -> None:
        return None

    def join(self, thunks: Any) -> Callable[[], None]:
        self.joins.append(len(thunks))
        every = tuple(thunks)
        return lambda: [thunk() for thunk in every] and None

    def chain(self, **arguments: Any) -> Interpreter:
        """A model of three such nodes."""

        def bind(context: Context, node: Node) -> Any:
            return ForNow(self, node)

        ops = MutableOpResolver()
        ops.add_custom("Improves", Registration(prepare=like_input, bind=bind))
        model = graph_model(chain_graph(["Improves"] * 3, Spec(F32, [3])))
        return Interpreter(model_content=model, op_resolver=ops, plugins=[], **arguments)


def test_nodes_change_over_when_better_thunks_are_there_and_are_joined_then() -> None:
    kernel = Kernel()
    chain = kernel.chain()
    for _ in range(3):
        assert answer(chain, [0, 0, 0]) == [3, 3, 3]
    kernel.there = True
    assert answer(chain, [0, 0, 0]) == [6, 6, 6]
    assert answer(chain, [1, 0, 0]) == [7, 6, 6]
    assert kernel.joins == [3]
    asked = kernel.asked
    assert answer(chain, [0, 0, 0]) == [6, 6, 6]
    assert kernel.asked == asked  # nobody asks what is final


def test_warm_up_waits_and_tells_how_far_it_is() -> None:
    kernel = Kernel()
    chain = kernel.chain()
    chain.allocate_tensors()
    told: list[tuple[int, int]] = []
    chain.warm_up(lambda done, total: told.append((done, total)))
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert answer(chain, [0, 0, 0]) == [6, 6, 6]
    chain.warm_up(lambda done, total: told.append((done, total)))
    assert len(told) == 4


def test_what_never_gets_better_goes_on() -> None:
    kernel = Kernel()
    kernel.never = True
    chain = kernel.chain()
    chain.allocate_tensors()
    chain.warm_up()
    assert answer(chain, [0, 0, 0]) == [3, 3, 3]


def test_profiles_and_deadlines_see_nodes_that_improve() -> None:
    kernel, profiler = Kernel(), Profiler()
    chain = kernel.chain(profiler=profiler, limits=Limits(max_seconds=60))
    assert answer(chain, [0, 0, 0]) == [3, 3, 3]
    kernel.there = True
    assert answer(chain, [0, 0, 0]) == [6, 6, 6]


def test_an_error_of_the_better_thunk_names_the_node_and_the_interpreter_stays_usable() -> None:
    kernel = Kernel()
    chain = kernel.chain()
    assert answer(chain, [0, 0, 0]) == [3, 3, 3]
    kernel.error = ValueError("it broke")
    with pytest.raises(PrepareError, match="it broke.*Improves"):
        chain.invoke()
    kernel.error = None
    assert answer(chain, [0, 0, 0]) == [3, 3, 3]


def test_a_resize_binds_such_nodes_anew() -> None:
    kernel = Kernel()
    chain = kernel.chain()
    assert answer(chain, [0, 0, 0]) == [3, 3, 3]
    [detail] = chain.get_input_details()
    chain.resize_tensor_input(detail["index"], [2])
    kernel.there = True
    assert answer(chain, [0, 0]) == [6, 6]
