"""Whatever is done to an interpreter in whatever order, with whatever delegates, its answers are those of the plain graph."""

from __future__ import annotations

import numpy as np
from core.tests.chains import F32, like_input
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.budgets import examples

from oplet import (
    Context,
    Delegate,
    DelegateContext,
    DelegateFlags,
    DelegateParams,
    Interpreter,
    ModelBuilder,
    MutableOpResolver,
    Node,
    Registration,
)
from oplet.errors import DelegateApplicationError, DelegateError, PrepareError

DYNAMIC, SHAPES = DelegateFlags.ALLOW_DYNAMIC_TENSORS, DelegateFlags.REQUIRE_PROPAGATED_SHAPES
COUNT = 6


def prepare_dynamic(context: Context, node: Node) -> None:
    context.set_dynamic(node.outputs[0])


def add(context: Context, node: Node) -> None:
    context.resize_tensor(node.outputs[0], node.inputs[0].shape)
    np.add(node.inputs[0].data, node.inputs[1].data, node.outputs[0].data)


class Adds(Delegate):
    """Claims nodes by index; `fails` may be "claim", "init" or "prepare"."""

    def __init__(self, nodes: frozenset[int], flags: DelegateFlags, fails: str) -> None:
        super().__init__()
        self.nodes = nodes
        self.flags = flags
        self.fails = fails
        self.alive = 0

    def prepare(self, context: DelegateContext) -> None:
        left = self.nodes & set(context.execution_plan)
        registration = Registration(init=self.init, free=self.free, prepare=self.prepare_kernel, invoke=self.invoke)
        context.replace_node_subsets_with_delegate_kernels(registration, sorted(left))
        self.refuse("claim")

    def refuse(self, what: str) -> None:
        if self.fails == what:
            raise ValueError(f"{what} fails")

    def init(self, context: Context, params: DelegateParams) -> DelegateParams:
        self.refuse("init")
        self.alive += 1
        return params

    def free(self, context: Context, params: DelegateParams) -> None:
        self.alive -= 1

    def prepare_kernel(self, context: Context, node: Node) -> None:
        self.refuse("prepare")
        for output in node.outputs:
            if SHAPES not in self.flags:
                context.resize_tensor(output, node.inputs[0].shape)

    def invoke(self, context: Context, node: Node) -> None:
        made = {}
        for replaced in node.user_data.nodes:
            a, b = (made[t] if t in made else t.data for t in replaced.inputs)  # noqa: SIM401 - some have no data
            made[replaced.outputs[0]] = a + b
        for output in node.outputs:
            if output.is_dynamic:
                context.resize_tensor(output, made[output].shape)
            output.data[...] = made[output]


def build(dynamic: bool) -> Interpreter:
    """Fibonacci: tensor i + 2 is the sum of the two before it; the first node's output may be dynamic."""
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    for index in range(COUNT + 2):
        graph.add_tensor(f"t{index}", F32, [2])
    for index in range(COUNT):
        graph.add_operator("First" if index == 1 else "Add", [index, index + 1], [index + 2])
    graph.set_inputs(0, 1)
    graph.set_outputs(3, COUNT + 1)
    ops = MutableOpResolver()
    ops.add_custom("Add", Registration(prepare=like_input, invoke=add))
    ops.add_custom("First", Registration(prepare=prepare_dynamic if dynamic else like_input, invoke=add))
    return Interpreter(model_content=builder.to_bytes(), op_resolver=ops, plugins=[])


delegates = st.builds(
    Adds,
    st.frozensets(st.integers(0, COUNT - 1)),
    st.sampled_from([DelegateFlags.NONE, DYNAMIC, DYNAMIC | SHAPES]),
    st.sampled_from(["", "", "", "claim", "init", "prepare"]),
)
steps = st.lists(
    st.one_of(
        delegates,
        st.integers(1, 4),
        st.sampled_from(["allocate", "run", "run", "remove", "release", "again"]),
    ),
    max_size=10,
)  # fmt: skip


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=examples(150))
@given(st.booleans(), steps)
def test_answers_are_those_of_the_plain_graph(dynamic: bool, steps: list[object]) -> None:
    interpreter = build(dynamic)
    used: list[Adds] = []
    size = 2
    for step in [*steps, "run"]:
        if isinstance(step, int):
            size = step
            interpreter.resize_tensor_input(0, [size])
            interpreter.resize_tensor_input(1, [size])
        elif step == "allocate":
            allocate(interpreter)
        elif step == "remove":
            interpreter.remove_all_delegates()
        elif step == "release":
            interpreter.release_non_persistent_memory()
        elif step == "run":
            a, b = np.arange(size, dtype=F32), np.full(size, 7, F32)
            run(interpreter, a, b)
            assert interpreter.get_tensor(3).tolist() == (a + 2 * b).tolist()
            assert interpreter.get_tensor(COUNT + 1).tolist() == (8 * a + 13 * b).tolist()
        elif step != "again" or used:
            delegate = used[-1] if step == "again" else step
            assert isinstance(delegate, Adds)
            used.append(delegate)
            apply(interpreter, delegate)
    interpreter.close()
    assert [delegate.alive for delegate in used] == [0] * len(used)


def apply(interpreter: Interpreter, delegate: Adds) -> None:
    try:
        interpreter.modify_graph_with_delegate(delegate)
    except DelegateApplicationError:
        return
    except DelegateError as error:
        assert "fails" in str(error)  # noqa: PT017
        assert interpreter._subgraphs[0].execution_plan == list(range(COUNT))
    except PrepareError as error:  # an earlier dynamic delegate's kernel, which nobody had prepared yet
        assert "fails" in str(error)  # noqa: PT017


def allocate(interpreter: Interpreter) -> None:
    try:
        interpreter.allocate_tensors()
    except RuntimeError as error:  # a dynamic delegate's kernel is prepared only now
        assert "fails" in str(error)  # noqa: PT017
        interpreter.remove_all_delegates()
        interpreter.allocate_tensors()


def run(interpreter: Interpreter, a: NDArray[np.float32], b: NDArray[np.float32]) -> None:
    allocate(interpreter)
    interpreter.set_tensor(0, a)
    interpreter.set_tensor(1, b)
    try:
        interpreter.invoke()
    except RuntimeError as error:  # or now, if it lies behind a dynamic tensor
        assert "fails" in str(error)  # noqa: PT017
        interpreter.remove_all_delegates()
        interpreter.invoke()
