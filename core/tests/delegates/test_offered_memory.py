"""Memory that a delegate's kernel offers for the tensors at its border, and kernels that cannot work with new shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from core.tests.chains import F32, add_one, adding, interpret, like_input

from oplet import (
    Context,
    DelegateContext,
    DelegateFlags,
    DelegateKernel,
    DelegateParams,
    Interpreter,
    Node,
    SimpleDelegate,
)
from oplet.errors import DelegateApplicationError, PrepareError
from oplet_testing import Spec, invoke


class Offers(DelegateKernel):
    """Adds one in arrays of its own."""

    def __init__(self, owner: Offering) -> None:
        self.owner = owner

    def prepare(self, context: Context, node: Node) -> None:
        like_input(context, node)
        if node.inputs[0].size > self.owner.most:
            raise DelegateApplicationError(f"{node.inputs[0].size} values are too many.")
        self.owner.arrays = [self.owner.make(node.inputs[0].shape) for _ in range(2)]
        for tensor, array in zip((node.inputs[0], node.outputs[0]), self.owner.arrays):
            context.offer_memory(tensor, array)

    def bind(self, context: Context, node: Node) -> Callable[[], None]:
        self.owner.taken = [t.data is array for t, array in zip((node.inputs[0], node.outputs[0]), self.owner.arrays)]
        return lambda: add_one(context, node)


class Offering(SimpleDelegate):
    name = "Offering"
    flags = DelegateFlags.ALLOW_DYNAMIC_TENSORS | DelegateFlags.REQUIRE_PROPAGATED_SHAPES

    def __init__(self, *wanted: int, most: int = 100) -> None:
        super().__init__()
        self.wanted = wanted
        self.most = most
        self.make: Callable[[tuple[int, ...]], Any] = lambda shape: np.zeros(shape, F32)
        self.arrays: list[Any] = []
        self.taken: list[bool] = []
        self.seen_model: Any = None

    def is_node_supported(self, context: DelegateContext, node: Node) -> bool | str:
        self.seen_model = context.model
        return (node.index in self.wanted and node.inputs[0].size <= self.most) or "too many"

    def create_kernel(self, params: DelegateParams) -> DelegateKernel:
        return Offers(self)


def make(*delegates: Offering) -> Interpreter:
    """Adds one three times."""
    return interpret(adding(3, Spec(F32, [None]), name="three times"), *delegates)


def answer(interpreter: Interpreter, size: int) -> list[float]:
    invoke(interpreter, np.arange(size, dtype=F32), resize=True)
    return interpreter.get_tensor(3).tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("node", [0, 1, 2])
def test_tensors_live_where_a_kernel_offers_it(node: int) -> None:
    delegate = Offering(node)
    interpreter = make(delegate)
    for size in (3, 5, 3):
        assert answer(interpreter, size) == [x + 3 for x in range(size)]
        assert delegate.taken == [True, True]
        assert delegate.arrays[0].tolist() == [x + node for x in range(size)]


def test_of_two_offers_for_a_tensor_the_first_is_taken() -> None:
    first, second = Offering(0), Offering(1)
    assert answer(make(first, second), 3) == [3, 4, 5]
    assert first.taken == [True, True]
    assert second.taken == [False, True]


def test_without_the_delegate_tensors_have_memory_of_their_own_again() -> None:
    delegate = Offering(0)
    interpreter = make(delegate)
    answer(interpreter, 3)
    interpreter.remove_all_delegates()
    interpreter.invoke()
    assert interpreter.get_tensor(3).tolist() == [3, 4, 5]
    assert interpreter._subgraphs[0].tensors[0].data is not delegate.arrays[0]


@pytest.mark.parametrize(
    "made",
    [
        lambda shape: np.zeros((*shape, 1), F32),
        lambda shape: np.zeros(shape, np.int32),
        lambda shape: np.broadcast_to(F32(0), shape),
        lambda shape: np.zeros((*shape, 2), F32)[..., 0],
    ],
    ids=["shape", "type", "read-only", "strided"],
)
def test_memory_that_does_not_fit_is_refused(made: Callable[[tuple[int, ...]], Any]) -> None:
    delegate = Offering(0)
    delegate.make = made
    with pytest.raises(PrepareError, match="the memory that is offered, an array of .* does not fit tensor 0"):
        answer(make(delegate), 3)


def test_a_kernel_that_cannot_work_with_the_shapes_of_now_gives_its_nodes_back_until_the_next_resize() -> None:
    delegate = Offering(0, 1, 2, most=4)
    interpreter = make(delegate)
    for size in (3, 6, 2, 7, 4):
        assert answer(interpreter, size)[0] == (1 if size <= 4 else 3)  # the kernel adds one for all of them
        ops = [report.op for report in interpreter.explain()]
        assert ops == (["Offering"] if size <= 4 else ["AddOne"] * 3)


def test_a_delegate_sees_the_model() -> None:
    delegate = Offering(0)
    make(delegate)
    [subgraph] = delegate.seen_model.root.subgraphs
    assert subgraph.name == "three times"


def test_offered_memory_shows_nothing_of_what_lay_there_before() -> None:
    delegate = Offering(0, 1, 2)
    delegate.make = lambda shape: np.full(shape, 1e30, F32)
    interpreter = make(delegate)
    interpreter.resize_tensor_input(0, [4])
    interpreter.allocate_tensors()
    assert delegate.taken == [True, True]
    for details in (*interpreter.get_input_details(), *interpreter.get_output_details()):
        np.testing.assert_array_equal(interpreter.get_tensor(details["index"]), np.zeros(4, F32))
