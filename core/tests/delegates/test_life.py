"""Kernels of delegates are freed once whatever happens, contexts end with prepare, and reports say what became of it all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from core.tests.chains import ADD_ONE, F32, add_chain, answer, interpret, like_input

from oplet import (
    Context,
    Delegate,
    DelegateContext,
    DelegateFlags,
    DelegateKernel,
    DelegateParams,
    Interpreter,
    ModelBuilder,
    Node,
    Profiler,
    SimpleDelegate,
)
from oplet.errors import DelegateApplicationError, DelegateError, UnresolvedOpError
from oplet_testing import invoke

DYNAMIC = DelegateFlags.ALLOW_DYNAMIC_TENSORS


def make(*delegates: Delegate, names: tuple[str, ...] = ("main",), **about: Any) -> Interpreter:
    """Each subgraph adds one three times."""
    builder = ModelBuilder()
    for name in names:
        add_chain(builder, 3, name=name)
    builder.add_metadata("note", b"hello")
    return interpret(builder.to_bytes(), *delegates, **about)


class Kernel(DelegateKernel):
    def __init__(self, owner: Counting, params: DelegateParams) -> None:
        self.owner = owner
        self.nodes = [node.index for node in params.nodes]
        owner.made.append(self)
        self.freed = 0

    def init(self, context: Context, params: DelegateParams) -> None:
        if len(self.owner.made) == self.owner.fail_init_of:
            raise ValueError("no room")

    def prepare(self, context: Context, node: Node) -> None:
        if self.owner.fail_prepare:
            raise ValueError("no luck")
        like_input(context, node)

    def invoke(self, context: Context, node: Node) -> None:
        np.add(node.inputs[0].data, F32(len(self.nodes)), node.outputs[0].data)

    def free(self, context: Context) -> None:
        self.freed += 1


class Counting(SimpleDelegate):
    """Claims nodes by index, and keeps every kernel that it made."""

    name = "Counting"

    def __init__(self, *wanted: int, flags: DelegateFlags = DelegateFlags.NONE) -> None:
        super().__init__()
        self.wanted = wanted
        self.flags = flags
        self.made: list[Kernel] = []
        self.fail_init_of = 0
        self.fail_prepare = False
        self.subgraphs = {0, 1, 2}

    def is_node_supported(self, context: DelegateContext, node: Node) -> bool | str:
        return node.index in self.wanted and context.subgraph_index in self.subgraphs

    def create_kernel(self, params: DelegateParams) -> DelegateKernel:
        return Kernel(self, params)

    @property
    def freed(self) -> list[int]:
        return [kernel.freed for kernel in self.made]


# Freed once --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flags", [DelegateFlags.NONE, DYNAMIC])
@pytest.mark.parametrize(
    "end",
    [
        lambda interpreter: interpreter.close(),
        lambda interpreter: (interpreter.close(), interpreter.close()),
        lambda interpreter: interpreter.remove_all_delegates(),
        lambda interpreter: (interpreter.remove_all_delegates(), interpreter.remove_all_delegates(), interpreter.close()),
        lambda interpreter: (interpreter.release_non_persistent_memory(), interpreter.close()),
        lambda interpreter: (interpreter.resize_tensor_input(0, [5]), interpreter.close()),
        lambda interpreter: (interpreter.resize_tensor_input(0, [5]), interpreter.allocate_tensors(), interpreter.close()),
    ],
    ids=["close", "close twice", "remove", "remove twice", "release", "resize", "resize and allocate"],
)
def test_kernels_are_freed_once(end: Callable[[Interpreter], object], flags: DelegateFlags) -> None:
    delegate = Counting(0, 2, flags=flags)
    interpreter = make(delegate)
    assert answer(interpreter) == [4, 5, 6]
    assert delegate.freed == [0, 0]
    end(interpreter)
    assert set(delegate.freed) == {1}


def test_a_kernel_whose_init_fails_is_freed_with_those_before_it() -> None:
    delegate = Counting(0, 2)
    delegate.fail_init_of = 2
    with pytest.raises(DelegateError, match="no room"):
        make(delegate)
    assert delegate.freed == [1, 1]


def test_kernels_that_fail_to_prepare_are_freed() -> None:
    first, second = Counting(0), Counting(2)
    second.fail_prepare = True
    interpreter = make(first)
    with pytest.raises(DelegateError, match="no luck"):
        interpreter.modify_graph_with_delegate(second)
    assert first.freed == second.freed == [1]
    assert answer(interpreter) == [4, 5, 6]


def test_a_delegate_that_fails_when_it_is_redone_leaves_a_graph_that_runs() -> None:
    delegate = Counting(1)
    interpreter = make(delegate)
    delegate.fail_prepare = True
    interpreter.resize_tensor_input(0, [3, 1])
    interpreter.resize_tensor_input(0, [3])
    with pytest.raises(DelegateError, match="no luck"):
        interpreter.allocate_tensors()
    assert delegate.freed == [1, 1]
    assert answer(interpreter) == [4, 5, 6]
    assert [report.applied for report in interpreter.delegation_reports()] == [False]


def test_a_failure_on_one_subgraph_frees_the_kernels_of_all() -> None:
    first, second = Counting(0), Counting(2)
    interpreter = make(first, names=("main", "other"))
    assert answer(interpreter) == [4, 5, 6]
    second.fail_prepare = True
    second.subgraphs = {1}
    with pytest.raises(DelegateError, match="failed on subgraph 1"):
        interpreter.modify_graph_with_delegate(second)
    assert (first.freed, second.freed) == ([1, 1], [1])
    interpreter.invoke()  # the first subgraph was ready, and is again
    assert interpreter.get_tensor(3).tolist() == [4, 5, 6]
    assert not any(report.applied for report in interpreter.delegation_reports())


def test_a_free_that_fails_does_not_keep_the_others_from_being_freed() -> None:
    delegate = Counting(0, 2)
    interpreter = make(delegate)
    del delegate.made[0].owner
    broken, whole = delegate.made

    def free(context: Context) -> None:
        broken.freed += 1
        raise ValueError("stuck")

    broken.free = free  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="stuck"):
        interpreter.close()
    assert (broken.freed, whole.freed) == (1, 1)
    interpreter.close()
    assert (broken.freed, whole.freed) == (1, 1)


# The hint ----------------------------------------------------------------------------------------------------

WHOLE = DelegateFlags.HINT_FULLY_DELEGATED_TO_SINGLE_DELEGATE


def test_a_delegate_that_wants_all_gets_all_or_nothing() -> None:
    static, some, everything = Counting(0), Counting(1, flags=WHOLE), Counting(0, 1, 2, flags=WHOLE)
    interpreter = make(static)
    with pytest.raises(DelegateApplicationError, match="Hint fully delegated to single delegate is set"):
        interpreter.modify_graph_with_delegate(some)
    assert [(r.delegate, r.applied) for r in interpreter.delegation_reports()] == [("Counting", True), ("Counting", False)]
    assert some.freed == [1]
    assert static.freed == [1, 0]  # undone with the other, and redone
    assert answer(interpreter) == [4, 5, 6]
    assert answer(make(everything)) == [4, 5, 6]


def test_a_delegate_that_fails_where_only_it_serves_an_op_leaves_the_op_unresolved() -> None:
    first, second = Counting(0, 1, 2), Counting()
    interpreter = make(first, resolved=False)
    assert answer(interpreter) == [4, 5, 6]

    def refuse(context: DelegateContext) -> None:
        raise ValueError("no driver")

    second.initialize = refuse  # type: ignore[method-assign]
    with pytest.raises(DelegateError, match="no driver"):
        interpreter.modify_graph_with_delegate(second)
    with pytest.raises(UnresolvedOpError, match="AddOne"):
        interpreter.allocate_tensors()


class OfThree(Counting):
    """Claims all nodes where three values come in, else the first; the kernel of all refuses other shapes."""

    def is_node_supported(self, context: DelegateContext, node: Node) -> bool:
        return node.index == 0 or context.tensors[0].shape == (3,)

    def create_kernel(self, params: DelegateParams) -> DelegateKernel:
        kernel = Kernel(self, params)
        kernel.prepare = self.prepare_kernel  # type: ignore[method-assign]
        return kernel

    def prepare_kernel(self, context: Context, node: Node) -> None:
        if len(node.user_data.nodes) > 1 and node.inputs[0].shape != (3,):
            raise DelegateApplicationError("three values, no more")
        like_input(context, node)


@pytest.mark.parametrize("sizes", [[4], [4, 5], [4, 5, 6], [4, 4]])
def test_after_shapes_that_a_kernel_refuses_the_delegate_claims_what_it_claimed_before(sizes: list[int]) -> None:
    interpreter = make(OfThree(flags=DYNAMIC))
    assert [r.partitions for r in interpreter.delegation_reports()] == [[[0, 1, 2]]]
    for size in sizes:
        invoke(interpreter, np.zeros(size, F32), resize=True)
        assert [r.partitions for r in interpreter.delegation_reports()] == [[[0]]]
    invoke(interpreter, np.zeros(3, F32), resize=True)
    assert [r.partitions for r in interpreter.delegation_reports()] == [[[0, 1, 2]]]


# Contexts ----------------------------------------------------------------------------------------------------


class Keeps(Counting):
    def initialize(self, context: DelegateContext) -> None:
        assert context.metadata("note") == b"hello" + bytes(len(context.metadata("note") or b"") - 5)
        assert context.metadata("none") is None
        assert (context.inputs, context.outputs, context.num_subgraphs) == ([0], [3], 1)
        context.execution_plan.clear()  # the caller's to keep
        assert len(context.execution_plan) == 3
        with pytest.raises(DelegateError, match="asks for node 3; the subgraph has 3"):
            context.node(3)
        self.contexts = [context, context.subgraph_context(0)]


@pytest.mark.parametrize(
    "use",
    [
        lambda context: context.execution_plan,
        lambda context: context.inputs,
        lambda context: context.outputs,
        lambda context: context.tensors,
        lambda context: context.subgraph_index,
        lambda context: context.num_subgraphs,
        lambda context: context.node(0),
        lambda context: context.metadata("note"),
        lambda context: context.subgraph_context(0),
        lambda context: context.mark_subgraph_as_delegation_skippable(1),
        lambda context: context.preview_delegate_partitioning([0]),
        lambda context: context.replace_node_subsets_with_delegate_kernels(ADD_ONE, [0]),
        lambda context: context.report_unsupported(0, "late"),
    ],
)
def test_a_context_ends_with_prepare(use: Callable[[DelegateContext], object]) -> None:
    delegate = Keeps(0)
    interpreter = make(delegate)
    for context in delegate.contexts:
        with pytest.raises(DelegateError, match="The function is forbidden if not calling in delegate"):
            use(context)
    assert answer(interpreter) == [4, 5, 6]


# Reports -----------------------------------------------------------------------------------------------------


def test_reports_say_what_became_of_each_delegate() -> None:
    good, bad = Counting(0, 2), Counting(1)
    bad.fail_prepare = True
    interpreter = make(good, names=("main", "VALIDATION:x", "other"))
    reports = interpreter.delegation_reports()
    assert [(r.subgraph, r.applied, r.error, r.nodes, r.partitions) for r in reports] == [
        (0, True, "", 3, [[0], [2]]),
        (2, True, "", 3, [[0], [2]]),
    ]
    assert reports[0].unsupported == {1: "not supported"}
    with pytest.raises(DelegateError):
        interpreter.modify_graph_with_delegate(bad, [0])
    removed, failed, other = interpreter.delegation_reports()
    assert (removed.applied, removed.error, removed.partitions) == (False, "it was removed", [])
    assert not failed.applied
    assert "no luck" in failed.error
    assert failed.partitions == []
    assert other.error == "it was removed"


# Profiling ---------------------------------------------------------------------------------------------------


class Telling(Counting):
    """Tells of each operator."""

    def create_kernel(self, params: DelegateParams) -> DelegateKernel:
        class Tells(Kernel):
            def invoke(self, context: Context, node: Node) -> None:
                super().invoke(context, node)
                for replaced in params.nodes:
                    context.record_operator(replaced, 0.0, 0.5)

        return Tells(self, params)


@pytest.mark.parametrize(
    ("flags", "force", "expected"),
    [
        (DelegateFlags.PER_OPERATOR_PROFILING, False, [0, 1, 2]),
        (DelegateFlags.PER_OPERATOR_PROFILING, True, [3, 2]),
        (DelegateFlags.NONE, True, [3, 2]),
    ],
)
def test_a_kernel_is_profiled_as_a_whole_or_operator_by_operator(flags: DelegateFlags, force: bool, expected: list[int]) -> None:
    profiler = Profiler()
    interpreter = make(Telling(0, 1, flags=flags), profiler=profiler, experimental_force_delegate_node_profiling=force)
    assert answer(interpreter) == [4, 5, 6]
    assert [event.node for event in profiler.events] == expected
