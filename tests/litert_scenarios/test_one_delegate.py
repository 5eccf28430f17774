"""One delegate: what it replaces, and what happens where it fails or shapes change."""

from __future__ import annotations

import numpy as np
import pytest

from oplet import Context, DelegateContext, DelegateFlags, Interpreter, Node, Registration, TensorBuilder
from oplet.errors import DelegateError, ImmutableGraphError, InvokeError, PrepareError, UnresolvedOpError
from oplet.runtime.delegation.load import load_delegate

from .models import (
    DYNAMIC,
    F32,
    MY_ADD,
    NONE,
    SHAPES,
    Fake,
    Float16,
    adds,
    answers,
    build,
    float16_model,
    node,
    opened,
    plan,
    resize,
    scenario,
    tensor,
)

ALL = [0, 1, 2]


@scenario("TestDelegate.NullDelegate")
def test_no_delegate_is_refused() -> None:
    interpreter = opened(adds())
    with pytest.raises(DelegateError, match="Null delegate"):
        interpreter.modify_graph_with_delegate(None)  # type: ignore[arg-type]
    interpreter.allocate_tensors()
    answers(interpreter)


@scenario("TestDelegate.BasicDelegate")
def test_the_kernel_node_knows_what_it_replaces() -> None:
    interpreter = opened(adds(), Fake(ALL))
    assert plan(interpreter) == [3]
    kernel = node(interpreter, 3)
    assert kernel.op_name == "fake_fused_op"
    assert [replaced.index for replaced in kernel.prepared.nodes] == ALL
    assert [t.index for t in kernel.prepared.input_tensors] == [0, 1]
    assert [t.index for t in kernel.prepared.output_tensors] == [3, 4]
    answers(interpreter)


@scenario("TestDelegate.ComplexDelegate")
def test_other_nodes_stay_in_the_plan() -> None:
    interpreter = opened(adds(), Fake([1, 2]))
    assert plan(interpreter) == [0, 3]
    assert node(interpreter, 3).op_name == "fake_fused_op"
    answers(interpreter)


@scenario("TestDelegate.DelegateNodeInitFailure")
def test_a_kernel_that_fails_in_init_refuses_the_delegation() -> None:
    interpreter = opened(adds())
    delegate = Fake(ALL, fail="init")
    with pytest.raises(DelegateError, match="Restored original execution plan.*init does not work"):
        interpreter.modify_graph_with_delegate(delegate)
    assert plan(interpreter) == ALL
    assert delegate.count("free") == 0
    answers(interpreter)


@scenario("TestDelegate.DelegateNodePrepareFailure")
def test_a_kernel_that_fails_in_prepare_leaves_a_graph_that_runs() -> None:
    interpreter = opened(adds())
    delegate = Fake(ALL, fail="prepare")
    with pytest.raises(DelegateError, match="Restored original execution plan.*prepare does not work"):
        interpreter.modify_graph_with_delegate(delegate)
    assert plan(interpreter) == ALL
    assert (delegate.count("init"), delegate.count("free")) == (1, 1)
    answers(interpreter)


@scenario("TestDelegate.DelegateNodeInvokeFailure")
def test_a_kernel_that_fails_in_invoke_fails_alone() -> None:
    interpreter = opened(adds(), delegate := Fake(ALL, fail="invoke"))
    assert plan(interpreter) == [3]
    with pytest.raises(InvokeError, match="invoke does not work"):
        answers(interpreter)
    interpreter.remove_all_delegates()
    assert plan(interpreter) == ALL
    assert (delegate.count("init"), delegate.count("free")) == (1, 1)
    answers(interpreter)


@scenario("TestDelegate.StaticDelegateMakesGraphImmutable")
def test_a_static_delegate_leaves_the_graph_immutable() -> None:
    def grow(context: Context, node: Node) -> None:
        context.add_tensor(TensorBuilder())

    registration = Registration(prepare=MY_ADD.prepare, invoke=grow)
    interpreter = opened(adds(), registration=registration)
    interpreter.allocate_tensors()
    interpreter.invoke()  # a graph without static delegates may grow
    static = opened(adds(), Fake([1, 2]), registration=registration)
    assert static._subgraphs[0].delegated.immutable
    with pytest.raises(ImmutableGraphError, match="AddTensors is disallowed when graph is immutable"):
        static.invoke()
    assert not opened(adds(), Fake(ALL, DYNAMIC))._subgraphs[0].delegated.immutable


@scenario("TestDelegate.TestResizeInputWithNonDynamicDelegate")
def test_a_resize_undoes_a_static_delegate_until_tensors_are_allocated() -> None:
    interpreter = opened(adds(), delegate := Fake(ALL))
    interpreter.resize_tensor_input(0, [3])  # the same shape: nothing happens
    assert plan(interpreter) == [3]
    resize(interpreter, 1, 3)
    assert plan(interpreter) == ALL
    interpreter.modify_graph_with_delegate(delegate)  # redone; what it claims once more is not in the plan
    assert plan(interpreter) == [3]
    [report] = interpreter.delegation_reports()
    assert report.applied
    assert report.partitions == [ALL]
    answers(interpreter, (1, 3))
    resize(interpreter, 1, 4)
    assert plan(interpreter) == ALL
    interpreter.allocate_tensors()
    assert plan(interpreter) == [3]
    answers(interpreter, (1, 4))
    interpreter.close()
    assert delegate.count("init") == delegate.count("free")


@scenario("TestDelegate.TestRequirePropagatedShapes_NonDynamicDelegate")
def test_a_static_delegate_has_shapes_anyway() -> None:
    interpreter = opened(adds(), Fake(ALL, SHAPES, shapes="propagated"))
    resize(interpreter, 1, 4)
    assert plan(interpreter) == ALL
    interpreter.allocate_tensors()
    assert plan(interpreter) == [3]
    answers(interpreter, (1, 4))


@scenario("TestDelegate.TestRequirePropagatedShapes_DynamicDelegateWithFlag")
def test_shapes_are_propagated_for_a_dynamic_delegate_that_asks() -> None:
    interpreter = opened(adds(), delegate := Fake(ALL, DYNAMIC | SHAPES, shapes="propagated", at_least=3))
    resize(interpreter, 1, 4)
    assert plan(interpreter) == [3]
    interpreter.allocate_tensors()
    assert plan(interpreter) == [3]
    answers(interpreter, (1, 4))
    assert delegate.count("claim") == 1


@scenario("TestDelegate.TestRequirePropagatedShapes_DynamicDelegateWithoutFlag")
def test_shapes_are_not_propagated_for_a_dynamic_delegate_that_does_not_ask() -> None:
    interpreter = opened(adds(), Fake(ALL, DYNAMIC, shapes="propagated", at_least=3))
    resize(interpreter, 1, 4)
    assert plan(interpreter) == [3]
    with pytest.raises(PrepareError, match="nobody told tensor 3"):
        interpreter.allocate_tensors()


# Buffer handles ----------------------------------------------------------------------------------------------


@scenario("TestDelegate.SetBufferHandleToInput", "TestDelegate.SetBufferHandleToOutput")
@pytest.mark.parametrize(("index", "owned"), [(0, False), (3, True)])
def test_a_buffer_stands_for_a_tensor(index: int, owned: bool) -> None:
    interpreter = opened(adds(), delegate := Fake(ALL))
    assert interpreter.get_buffer_handle(index) == (None, delegate if owned else None)
    interpreter.set_buffer_handle(index, 7, delegate)
    assert interpreter.get_buffer_handle(index) == (7, delegate)


@scenario("TestDelegate.SetInvalidHandleToTensor")
def test_another_delegate_s_buffer_is_refused() -> None:
    interpreter = opened(adds(), delegate := Fake(ALL))
    interpreter.invoke()
    with pytest.raises(DelegateError, match="it belongs to fake_fused_op"):
        interpreter.set_buffer_handle(3, 7, Fake(ALL))
    assert interpreter.get_buffer_handle(3) == (None, delegate)


@scenario("TestDelegate.TestCopyFromBufferInvoke")
def test_without_a_buffer_nothing_is_copied() -> None:
    interpreter = opened(adds(), delegate := Fake(ALL))
    answers(interpreter)
    assert delegate.count("copy") == 0


@scenario("TestDelegate.TestCopyFromBuffer")
def test_a_stale_output_is_copied_from_its_buffer() -> None:
    interpreter = opened(adds())
    interpreter.allocate_tensors()
    interpreter.invoke()
    interpreter.modify_graph_with_delegate(delegate := Fake(ALL))
    interpreter.set_buffer_handle(3, 7, delegate)
    interpreter.invoke()
    assert interpreter.get_buffer_handle(3) == (7, delegate)
    assert delegate.count("copy") == 1
    assert interpreter.get_tensor(3).tolist() == [6, 6, 6]
    assert delegate.count("copy") == 1


@scenario("TestOpaqueDelegate.PrepareCopyFromFree")
def test_buffers_are_freed_when_replaced_and_at_the_end() -> None:
    interpreter = opened(adds(), delegate := Fake(ALL))
    interpreter.set_buffer_handle(3, 1, delegate)
    tensor(interpreter, 3).data_is_stale = True
    interpreter.invoke()
    assert ("copy", 1) in delegate.calls
    assert delegate.count("free buffer") == 0
    interpreter.set_buffer_handle(3, 2, delegate)
    assert delegate.calls[-1] == ("free buffer", 1)
    interpreter.close()
    assert ("free buffer", 2) in delegate.calls
    assert delegate.count("free buffer") == 2


# Names, custom ops, subgraphs -----------------------------------------------------------------------------------


@scenario("TestDelegateKernel.WithoutName")
def test_a_kernel_without_a_name_is_named_after_its_delegate() -> None:
    class Nameless(Fake):
        def registration(self) -> Registration:
            return Registration(init=self.init, prepare=self.prepare_kernel, invoke=self.invoke)

    interpreter = opened(adds(), Nameless(ALL))
    assert node(interpreter, 3).op_name == "fake_fused_op"
    answers(interpreter)


@scenario("TestDelegateKernel.WithoutName")
def test_a_kernel_that_cannot_run_is_refused_before_it_runs() -> None:
    class Empty(Fake):
        def registration(self) -> Registration:
            return Registration(init=lambda context, params: None)

    with pytest.raises(DelegateError, match="has neither invoke nor bind"):
        opened(adds(), Empty(ALL))


@scenario("TestDelegate.DelegateCustomOpResolution")
@pytest.mark.parametrize("flags", [DYNAMIC, NONE], ids=["dynamic", "static"])
def test_a_delegate_serves_an_op_that_nobody_else_does(flags: DelegateFlags) -> None:
    interpreter = opened(build([0, 1], [2], [([0, 1], [2])]), registration=None)
    with pytest.raises(UnresolvedOpError, match="my_add"):
        interpreter.allocate_tensors()
    # LiteRT refuses static delegates here: it prepares the unresolved nodes first.
    interpreter.modify_graph_with_delegate(Fake([0], flags))
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.ones(3, F32))
    interpreter.set_tensor(1, np.ones(3, F32))
    interpreter.invoke()
    assert interpreter.get_tensor(2).tolist() == [2, 2, 2]
    interpreter.remove_all_delegates()
    with pytest.raises(UnresolvedOpError, match="my_add"):
        interpreter.allocate_tensors()


@scenario("TestDelegate.AllSubgraphsAreDelegatedByDefault")
def test_every_subgraph_is_delegated() -> None:
    interpreter = opened(adds(names=["main", "other"]), delegate := Fake(ALL))
    for subgraph in (0, 1):
        assert plan(interpreter, subgraph) == [3]
        assert node(interpreter, 3, subgraph).delegate is delegate


@scenario("TestDelegate.ValidationSubgraphsAreNotDelegated")
def test_validation_subgraphs_are_left_alone() -> None:
    interpreter = opened(adds(names=["main", "VALIDATION:foo"]), delegate := Fake(ALL))
    assert plan(interpreter, 0) == [3]
    assert plan(interpreter, 1) == ALL
    assert delegate.count("claim") == 1


@scenario("ExternalDelegateTest.CreateFailureWithInvalidLibrary")
def test_a_name_that_no_package_brings_is_refused() -> None:
    with pytest.raises(DelegateError, match=r"Failed to load delegate from invalid_path\.so"):
        load_delegate("invalid_path.so")


# Constants of float16 ------------------------------------------------------------------------------------------


def float16_answer(interpreter: Interpreter) -> float:
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.array([3], F32))
    interpreter.invoke()
    return float(interpreter.get_tensor(interpreter.get_output_details()[0]["index"])[0])


@scenario("TestFP16Delegation.NonDelegatedInterpreterWorks", "TestFP16Delegation.NullDelegate")
def test_a_float16_model_runs_without_a_delegate() -> None:
    interpreter = Interpreter(model_content=float16_model())
    with pytest.raises(DelegateError, match="Null delegate"):
        interpreter.modify_graph_with_delegate(None)  # type: ignore[arg-type]
    assert float16_answer(interpreter) == 16


@scenario("TestFP16Delegation.DelegationWorks")
@pytest.mark.parametrize(("partitions", "nodes"), [(1, 7), (2, 7)])
def test_a_delegate_takes_the_float16_constants_themselves(partitions: int, nodes: int) -> None:
    interpreter = Interpreter(model_content=float16_model(), experimental_delegates=[Float16(partitions)])
    assert len(plan(interpreter)) == nodes
    kernels = [node(interpreter, index) for index in plan(interpreter) if index >= 8]
    assert len(kernels) == partitions
    assert any(tensor.type.name == "FLOAT16" for kernel in kernels for tensor in kernel.inputs)
    assert float16_answer(interpreter) == 16
    interpreter.remove_all_delegates()
    assert len(plan(interpreter)) == 8
    assert float16_answer(interpreter) == 16


@scenario("TestFP16Delegation.DelegatePrepareFails")
@pytest.mark.parametrize("partitions", [1, 2])
def test_a_failing_delegate_leaves_a_float16_model_as_it_was(partitions: int) -> None:
    interpreter = Interpreter(model_content=float16_model())
    with pytest.raises(DelegateError, match="prepare does not work"):
        interpreter.modify_graph_with_delegate(Float16(partitions, fail=True))
    assert len(plan(interpreter)) == 8
    assert float16_answer(interpreter) == 16


def test_the_context_is_the_delegate_s_only_while_it_claims() -> None:
    class Keeps(Fake):
        def prepare(self, context: DelegateContext) -> None:
            super().prepare(context)
            self.context = context

    opened(adds(), delegate := Keeps(ALL))
    with pytest.raises(DelegateError, match="forbidden if not calling in delegate"):
        delegate.context.execution_plan  # noqa: B018
