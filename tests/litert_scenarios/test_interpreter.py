"""What interpreter_test.cc says of delegates, and of the memory that they share with the rest."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from oplet import BuiltinOperator, Context, Interpreter, ModelBuilder, Node, Registration
from oplet.errors import DelegateApplicationError, StateError

from .models import F32, Fake, adds, answers, opened, plan, resize, scenario


@scenario("BasicInterpreter.TestUnsupportedDelegateFunctions")
def test_kernels_do_not_get_what_delegates_get() -> None:
    for name in ("node", "preview_delegate_partitioning", "replace_node_subsets_with_delegate_kernels", "subgraph_context"):
        assert not hasattr(Context, name)
    seen: list[Context] = []

    def prepare(context: Context, node: Node) -> None:
        seen.append(context)
        context.resize_tensor(node.outputs[0], node.inputs[0].shape)

    opened(adds(), registration=Registration(prepare=prepare, invoke=lambda context, node: None)).allocate_tensors()
    assert not hasattr(seen[0], "replace_node_subsets_with_delegate_kernels")


class Asked(Fake):
    """Claims nothing."""

    def __init__(self) -> None:
        super().__init__([])


@scenario(
    "InterpreterTest.ModifyGraphWithDelegateUsesActiveSubgraphs", "InterpreterTest.ModifyGraphWithDelegateCanSkipMainSubgraph"
)
@pytest.mark.parametrize(("only", "asked"), [([2, 0, 2], [0, 2]), ([2], [2]), (None, [0, 1, 2])])
def test_a_delegate_is_asked_about_the_subgraphs_that_are_named(only: list[int] | None, asked: list[int]) -> None:
    interpreter = opened(adds(names="abc"))
    interpreter.modify_graph_with_delegate(delegate := Asked(), only)
    assert [index for _, index in delegate.calls] == asked


@scenario("InterpreterTest.ModifyGraphWithDelegateValidatesActiveSubgraphsBeforeDelegation")
@pytest.mark.parametrize(
    ("only", "message"), [([0, 3], "index 3 is out of range"), ([-1], "index -1 is out"), ([], "must not be empty")]
)
def test_wrong_subgraphs_are_refused_before_anybody_is_asked(only: list[int], message: str) -> None:
    interpreter = opened(adds(names="abc"))
    delegate = Asked()
    with pytest.raises(DelegateApplicationError, match=f"Active subgraph .*{message}"):
        interpreter.modify_graph_with_delegate(delegate, only)
    assert not delegate.calls


@scenario("InterpreterTest.SubgraphNumbering")
def test_subgraphs_are_numbered_as_in_the_model() -> None:
    interpreter = opened(adds(names="abcdef"))
    assert [subgraph.index for subgraph in interpreter._subgraphs] == [0, 1, 2, 3, 4, 5]


@scenario("TestDelegateOwnership.ProperlyDisposed")
def test_a_delegate_lives_as_long_as_its_interpreter() -> None:
    delegate = Fake([0, 1, 2])
    alive = weakref.ref(delegate)
    interpreter = opened(adds(), delegate)
    del delegate
    gc.collect()
    assert alive() is not None
    answers(interpreter)
    del interpreter
    gc.collect()
    assert alive() is None


@scenario("BasicInterpreter.ReleaseNonPersistentMemory")
def test_released_memory_must_be_allocated_again() -> None:
    interpreter = opened(adds())
    interpreter.release_non_persistent_memory()
    interpreter.allocate_tensors()
    answers(interpreter)
    interpreter.release_non_persistent_memory()
    with pytest.raises(StateError, match="Invoke called on model that is not ready"):
        interpreter.invoke()
    interpreter.allocate_tensors()
    answers(interpreter)
    interpreter.release_non_persistent_memory()
    resize(interpreter, 4)
    with pytest.raises(StateError, match="Invoke called on model that is not ready"):
        interpreter.invoke()
    interpreter.allocate_tensors()
    answers(interpreter, (4,))


@scenario("BasicInterpreter.DynamicTensorsResizeDescendants")
def test_tensors_behind_a_dynamic_one_follow_its_shape() -> None:
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    graph.add_tensor("x", F32, [2, 2, 1, 1])
    graph.add_tensor("padding", np.int32, [4, 2])
    graph.add_tensor("padded", F32, [1, 1, 1, 1])
    graph.add_tensor("y", F32, [1, 1, 1, 1])
    graph.add_operator(BuiltinOperator.PAD, [0, 1], [2])
    graph.add_operator(BuiltinOperator.NEG, [2], [3])
    graph.set_inputs(0, 1)
    graph.set_outputs(3)
    interpreter = Interpreter(model_content=builder.to_bytes())
    interpreter.allocate_tensors()
    for padding, shape in (([2, 2, 2, 2], [6, 6, 1, 1]), ([4, 4, 6, 6], [10, 14, 1, 1])):
        interpreter.set_tensor(0, np.ones([2, 2, 1, 1], F32))
        interpreter.set_tensor(1, np.array([*padding, 0, 0, 0, 0], np.int32).reshape(4, 2))
        interpreter.invoke()
        assert list(interpreter.get_tensor(3).shape) == shape
        assert interpreter.get_tensor(3).sum() == -4


def test_inputs_keep_their_values_while_delegates_come_and_go() -> None:
    interpreter = opened(adds())
    interpreter.allocate_tensors()
    values = np.array([1, 2, 3], F32)
    interpreter.set_tensor(0, values)
    interpreter.set_tensor(1, values)
    interpreter.modify_graph_with_delegate(Fake([0, 2]))
    interpreter.invoke()
    assert interpreter.get_tensor(4).tolist() == [3, 6, 9]
    interpreter.remove_all_delegates()
    assert plan(interpreter) == [0, 1, 2]
    interpreter.invoke()
    assert interpreter.get_tensor(4).tolist() == [3, 6, 9]
