"""The contract suite of delegates: a delegate that keeps the rules passes, one that breaks a rule is found out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from core.tests.chains import double, like_input

from oplet import (
    Context,
    Delegate,
    DelegateFlags,
    DelegateKernel,
    DelegateParams,
    MutableOpResolver,
    Node,
    Registration,
    SimpleDelegate,
)
from oplet_testing import DelegateContract, Graph, Op, Spec, graph_model

VECTOR = Spec("float32", [4])
CHECKS = sorted(name for name in dir(DelegateContract) if name.startswith("test_"))


class Kernel(DelegateKernel):
    factor = 2

    def prepare(self, context: Context, node: Node) -> None:
        like_input(context, node)

    def bind(self, context: Context, node: Node) -> Callable[[], None]:
        x, y = node.inputs[0].data, node.outputs[0].data
        return lambda: np.multiply(x, self.factor, out=y)


class Good(SimpleDelegate):
    name = "Good"

    def is_node_supported(self, context: Any, node: Node) -> bool | str:
        return node.op_name == "Double" or "it only doubles"

    def create_kernel(self, params: DelegateParams) -> DelegateKernel:
        return Kernel()


#: Two nodes to claim and one between them to leave alone.
MODEL = graph_model(
    Graph(dict.fromkeys("abcd", VECTOR), "a", "d", [Op("Double", "a", "b"), Op("Other", "b", "c"), Op("Double", "c", "d")])
)


def contract_of(delegate: Callable[..., Delegate]) -> DelegateContract:
    resolver = MutableOpResolver()
    resolver.add_custom("Double", Registration(prepare=like_input, invoke=double))
    resolver.add_custom("Other", Registration(prepare=like_input, invoke=double))
    about = {
        "delegate": delegate,
        "model": MODEL,
        "inputs": [np.array([1, -2, 3, 0.5], np.float32)],
        "op_resolver": resolver,
        "plugins": [],
    }
    return type("Contract", (DelegateContract,), about)()


@pytest.mark.parametrize("check", CHECKS)
def test_a_delegate_that_keeps_the_rules_passes(check: str) -> None:
    getattr(contract_of(Good), check)()


class ClaimsNothing(Good):
    def is_node_supported(self, context: Any, node: Node) -> bool | str:
        return "too hard"


class Trebles(Good):
    def create_kernel(self, params: DelegateParams) -> DelegateKernel:
        kernel = Kernel()
        kernel.factor = 3
        return kernel


class ChangesNodes(Good):
    def is_node_supported(self, context: Any, node: Node) -> bool | str:
        node.version = 7
        return True


class HidesFailure(Good):
    def prepare(self, context: Any) -> None:
        try:
            super().prepare(context)
        except Exception:
            context.report_unsupported(0, "something went wrong")


class KeepsTheFirstSize(Good):
    flags = DelegateFlags.ALLOW_DYNAMIC_TENSORS

    def create_kernel(self, params: DelegateParams) -> DelegateKernel:
        class First(Kernel):
            size: int | None = None

            def bind(self, context: Context, node: Node) -> Callable[[], None]:
                self.size = size = self.size or node.inputs[0].shape[0]
                x, y = node.inputs[0].data, node.outputs[0].data
                y[...] = 0
                return lambda: np.multiply(x[:size], 2, out=y[:size])

        return First()


class ClosesItsDevice(Good):
    """The kernels close what belongs to the delegate."""

    is_open = True

    def create_kernel(self, params: DelegateParams) -> DelegateKernel:
        delegate = self

        class Closing(Kernel):
            def init(self, context: Context, params: DelegateParams) -> None:
                if not delegate.is_open:
                    raise ValueError("the device is closed")

            def free(self, context: Context) -> None:
                delegate.is_open = False

        return Closing()


class ClaimsEachNodeOnce(Good):
    def __init__(self, options: Any = None) -> None:
        super().__init__(options)
        self.seen: set[int] = set()

    def is_node_supported(self, context: Any, node: Node) -> bool | str:
        if node.index in self.seen:
            return "it had that one"
        self.seen.add(node.index)
        return super().is_node_supported(context, node)


class SaysNothing(Good):
    def is_node_supported(self, context: Any, node: Node) -> bool | str:
        return node.op_name == "Double"


class WorksInPlace(Good):
    def create_kernel(self, params: DelegateParams) -> DelegateKernel:
        class InPlace(Kernel):
            def bind(self, context: Context, node: Node) -> Callable[[], None]:
                x, y = node.inputs[0].data, node.outputs[0].data

                def run() -> None:
                    np.multiply(x, 2, out=x)
                    np.copyto(y, x)

                return run

        return InPlace()


@pytest.mark.parametrize(
    ("broken", "check", "words"),
    [
        (ClaimsNothing, "test_it_claims_a_node_of_the_model", "leaves every node of the model alone: Double, Other, Double"),
        (Trebles, "test_the_answers_are_those_without_it", "answers otherwise than the kernels"),
        (ChangesNodes, "test_a_failure_leaves_the_graph_as_it_was", "are not what they were"),
        (HidesFailure, "test_a_failure_leaves_the_graph_as_it_was", "hides that claiming"),
        (ClosesItsDevice, "test_every_kernel_is_freed_once", "after resizes, it fails in another place too: .*device is closed"),
        (ClaimsEachNodeOnce, "test_after_a_resize_it_claims_what_it_claimed", r"it claims the nodes \[\[\]\], before it was"),
        (SaysNothing, "test_it_says_why_it_leaves_a_node_alone", r"leaves node 1 \(Other\) alone: 'not supported'"),
        (WorksInPlace, "test_it_writes_its_own_tensors_only", "it changed .*'[ac]'"),
        (KeepsTheFirstSize, "test_a_resized_graph_answers_as_a_fresh_one_of_that_size", "after a resize to another size"),
    ],
)
def test_a_delegate_that_breaks_a_rule_is_found_out(broken: type[Delegate], check: str, words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        getattr(contract_of(broken), check)()
