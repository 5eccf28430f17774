"""`Delegate.only_nodes`: a delegate claims none of the nodes that it is not offered, whatever it would claim by itself."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import numpy as np
import pytest
from core.tests.chains import F32, adding, answer, interpret
from core.tests.delegates.test_delegates import Claims

from oplet import Delegate, DelegateContext, DelegateKernel, DelegateParams, Node, kernel_registration
from oplet.errors import DelegateError


def offered(delegate: Delegate, only: Container[int] | None) -> Any:
    delegate.only_nodes = only
    return interpret(adding(6), delegate)


def partitions(interpreter: Any) -> list[list[int]]:
    return [nodes for report in interpreter.delegation_reports() for nodes in report.partitions]


@pytest.mark.parametrize(
    ("only", "wanted"),
    [(None, [[0, 1, 2, 3, 4, 5]]), ({0, 1, 4}, [[0, 1], [4]]), (range(2, 4), [[2, 3]]), ({77}, []), ((), [])],
    ids=str,
)
def test_only_what_is_offered_is_claimed_and_the_answer_is_the_same(only: Container[int] | None, wanted: list[list[int]]) -> None:
    interpreter = offered(Claims(set(range(6))), only)
    assert partitions(interpreter) == wanted
    assert answer(interpreter) == [7, 8, 9]


def test_reports_say_that_a_node_was_not_offered() -> None:
    interpreter = offered(Claims({0, 1, 2}), {0, 1, 5})
    [report] = interpreter.delegation_reports()
    assert report.unsupported == {
        **dict.fromkeys((2, 3, 4), "it is not offered to this delegate (only_nodes)"),
        5: "AddOne is not wanted",
    }


def test_a_resize_does_not_lift_it() -> None:
    interpreter = offered(Claims(set(range(6))), {1, 2})
    interpreter.resize_tensor_input(0, [5])
    interpreter.allocate_tensors()
    assert partitions(interpreter) == [[1, 2]]
    interpreter.set_tensor(0, np.zeros(5, F32))
    interpreter.invoke()
    assert interpreter.get_tensor(6).tolist() == [6] * 5


def test_what_one_delegate_is_not_offered_another_may_claim() -> None:
    first, second = Claims(set(range(6))), Claims(set(range(6)))
    first.only_nodes = {0, 1, 5}
    interpreter = interpret(adding(6), first, second)
    assert [report.partitions for report in interpreter.delegation_reports()] == [[[0, 1], [5]], [[2, 3, 4]]]
    assert answer(interpreter) == [7, 8, 9]


def test_nodes_that_are_not_offered_look_like_another_delegate_s() -> None:
    seen: list[tuple[str, bool]] = []

    class Looks(Claims):
        def is_node_supported(self, context: DelegateContext, node: Node) -> bool | str:
            seen.extend((context.node(i).op.name, context.node(i).delegate is None) for i in context.execution_plan)
            return "it only looks"

    offered(Looks(set()), {3})
    assert seen == [("DELEGATE", False)] * 3 + [("CUSTOM", True)] + [("DELEGATE", False)] * 2


def test_a_delegate_that_claims_what_it_is_not_offered_is_refused() -> None:
    class Grasps(Delegate):
        name = "Grasps"

        def prepare(self, context: DelegateContext) -> None:
            def create(params: DelegateParams) -> DelegateKernel:
                raise AssertionError("nothing was claimed")

            context.replace_node_subsets_with_delegate_kernels(kernel_registration(self.name, create), context.execution_plan)

    with pytest.raises(DelegateError, match="claims node 0, which is not among its only_nodes"):
        offered(Grasps(), {3, 4})
