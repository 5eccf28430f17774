"""Two delegates in turn, each with static or with dynamic shapes."""

from __future__ import annotations

import numpy as np
import pytest

from oplet import DelegateFlags
from oplet.errors import DelegateApplicationError, DelegateError, InvokeError, StateError

from .models import DYNAMIC, F32, NONE, SHAPES, Fake, adds, answers, holds, node, opened, plan, resize, scenario

ALL = [0, 1, 2]
pairs = pytest.mark.parametrize(
    ("first", "second"), [(NONE, NONE), (DYNAMIC, NONE), (NONE, DYNAMIC), (DYNAMIC, DYNAMIC)], ids=["ss", "ds", "sd", "dd"]
)


def balanced(*delegates: Fake) -> bool:
    return all(delegate.count("init") == delegate.count("free") for delegate in delegates)


@scenario("TestTwoDelegates.SecondDelegationPrepareFailure")
@pairs
def test_the_second_fails_and_both_are_undone(first: DelegateFlags, second: DelegateFlags) -> None:
    interpreter = opened(adds())
    if first is second is DYNAMIC:
        interpreter.allocate_tensors()  # else a dynamic delegate's kernels are prepared only later
    one, two = Fake([1, 2], first), Fake([0], second, fail="prepare")
    interpreter.modify_graph_with_delegate(one)
    assert len(plan(interpreter)) == 2
    with pytest.raises(DelegateError, match="Restored original execution plan.*prepare does not work") as raised:
        interpreter.modify_graph_with_delegate(two)
    assert not isinstance(raised.value, DelegateApplicationError)
    assert plan(interpreter) == ALL
    assert [report.applied for report in interpreter.delegation_reports()] == [False, False]
    assert balanced(one, two)
    answers(interpreter)


@scenario("TestTwoDelegates.SecondDelegationInvokeFailure")
@pairs
def test_the_second_fails_to_invoke_and_both_are_removed(first: DelegateFlags, second: DelegateFlags) -> None:
    one, two = Fake([1, 2], first), Fake([0], second, fail="invoke")
    interpreter = opened(adds(), one, two)
    assert len(plan(interpreter)) == 2
    interpreter.allocate_tensors()
    with pytest.raises(InvokeError, match="invoke does not work"):
        answers(interpreter)
    interpreter.remove_all_delegates()
    assert plan(interpreter) == ALL
    assert balanced(one, two)
    interpreter.invoke()  # on the inputs that were set before
    holds(interpreter, np.array([1, 2, 3], F32))


@scenario("TestTwoDelegates.NodeIndicesCorrectlyHandledAfterDelegation")
@pairs
def test_the_second_names_nodes_as_the_model_does(first: DelegateFlags, second: DelegateFlags) -> None:
    interpreter = opened(adds(), Fake([0, 1], first))
    assert len(plan(interpreter)) == 2
    interpreter.modify_graph_with_delegate(Fake([2], second))
    assert plan(interpreter) == [3, 4]


@scenario("TestTwoDelegates.TestResizeInputTensors")
@pairs
def test_a_resize_undoes_both_if_one_is_static(first: DelegateFlags, second: DelegateFlags) -> None:
    one, two = Fake([0], first), Fake([1, 2], second)
    interpreter = opened(adds(), one, two)
    assert len(plan(interpreter)) == 2
    interpreter.resize_tensor_input(0, [3])
    assert len(plan(interpreter)) == 2
    resize(interpreter, 1, 4)
    assert len(plan(interpreter)) == (2 if first is second is DYNAMIC else 3)
    interpreter.allocate_tensors()
    assert len(plan(interpreter)) == 2
    answers(interpreter, (1, 4))
    interpreter.close()
    assert balanced(one, two)


@scenario("TestTwoDelegates.TestDelegationWithPartitionPreview")
@pairs
def test_a_preview_lets_a_delegate_leave_small_partitions(first: DelegateFlags, second: DelegateFlags) -> None:
    interpreter = opened(adds(), Fake([0, 2], first, at_least=3))
    assert plan(interpreter) == ALL
    interpreter.modify_graph_with_delegate(Fake([0, 2], second, at_least=2))
    assert plan(interpreter) == [3, 1]
    assert node(interpreter, 3).op_name == "fake_fused_op"


@scenario("TestTwoDelegates.TestRequirePropagatedShapes")
def test_shapes_are_propagated_if_one_asks() -> None:
    interpreter = opened(adds(), Fake([0], DYNAMIC), Fake([1, 2], DYNAMIC | SHAPES, shapes="propagated", at_least=1))
    assert len(plan(interpreter)) == 2
    resize(interpreter, 1, 4)
    interpreter.allocate_tensors()
    assert len(plan(interpreter)) == 2
    answers(interpreter, (1, 4))


@scenario("TestTwoDelegates.ReleaseNonPersistentMemoryWithDelegates")
@pairs
def test_memory_is_released_and_taken_again(first: DelegateFlags, second: DelegateFlags) -> None:
    interpreter = opened(adds())
    interpreter.release_non_persistent_memory()  # there is none yet
    one, two = Fake([0], first), Fake([1, 2], second)
    interpreter.modify_graph_with_delegate(one)
    interpreter.modify_graph_with_delegate(two)
    assert len(plan(interpreter)) == 2
    interpreter.release_non_persistent_memory()
    with pytest.raises(StateError, match="Invoke called on model that is not ready"):
        interpreter.invoke()
    interpreter.allocate_tensors()
    assert len(plan(interpreter)) == 2
    answers(interpreter)
    assert one.count("claim") == two.count("claim") == 1
    interpreter.release_non_persistent_memory()


@scenario("TestTwoDelegates.DynamicTensorBeforeStaticDelegate", "TestTwoDelegates.DynamicTensorAfterStaticDelegate")
@pytest.mark.parametrize(("static", "dynamic"), [([1, 2], [0]), ([0], [1, 2])], ids=["before", "after"])
def test_a_second_delegate_cannot_make_tensors_dynamic(static: list[int], dynamic: list[int]) -> None:
    interpreter = opened(adds(), one := Fake(static))
    two = Fake(dynamic, DYNAMIC, shapes="dynamic")
    with pytest.raises(DelegateApplicationError, match="Cannot allow dynamic tensors due to previous delegation"):
        interpreter.modify_graph_with_delegate(two)
    assert plan(interpreter) == ALL
    assert balanced(one, two)
    interpreter.allocate_tensors()
    answers(interpreter)
