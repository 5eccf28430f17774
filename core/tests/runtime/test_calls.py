"""What control-flow kernels are promised: callees, resources, and that nothing outlives the interpreter."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from core.tests.chains import answer, double, like_input

from oplet import Context, Delegate, Interpreter, MutableOpResolver, Node, Registration, ensure
from oplet.delegates.delegate import DelegateContext
from oplet.errors import LimitError, OpletError, PrepareError
from oplet_testing.graphs import Graph, Op, graph_model
from oplet_testing.one_op import Spec

X = Spec("float32", [2])


def prepare_call(context: Context, node: Node) -> None:
    """Call the subgraph after this one."""
    callee = context.callee(context.resources["calls"][context.tensors[0].name])
    for position, tensor in enumerate(node.inputs):
        callee.set_input(position, tensor.shape, tensor.type)
    callee.prepare()
    context.resize_tensor(node.outputs[0], callee.outputs[0].shape)
    node.prepared = callee


def invoke_call(context: Context, node: Node) -> None:
    callee = node.prepared
    callee.prepare()
    callee.restart()
    np.copyto(callee.inputs[0].data, node.inputs[0].data)
    callee.bind()()
    np.copyto(node.outputs[0].data, callee.outputs[0].data)


def count_runs(context: Context, node: Node) -> None:
    """Add to a variable tensor, and write it."""
    node.inputs[1].data[...] += 1
    node.outputs[0].data[...] = node.inputs[1].data


def refuse(context: Context, node: Node) -> None:
    ensure(False, "no")


def interpreter(model: bytes, calls: dict[str, int] | None = None, freed: list[Any] | None = None) -> Interpreter:
    freed = [] if freed is None else freed
    resolver = MutableOpResolver()
    for name, methods in {
        "Call": {"prepare": prepare_call, "invoke": invoke_call},
        "Double": {"prepare": like_input, "invoke": double},
        "Count": {"prepare": like_input, "invoke": count_runs},
        "Refuse": {"prepare": like_input, "invoke": refuse},
    }.items():
        freeing: Any = {"init": lambda context, buffer: "state", "free": lambda context, data: freed.append(data)}
        resolver.add_custom(name, Registration(custom_name=name, **methods, **freeing))
    result = Interpreter(model_content=model, op_resolver=resolver, plugins=[])
    result._runtime.session.resources["calls"] = calls or {}
    return result


def chain(*ops: str, **more: Any) -> bytes:
    """A subgraph per op; its first tensor is named after its place: a, b, c, ..."""
    graphs = []
    for letter, op in zip("abcdefgh", ops):
        tensors = {letter: X, "y": X} | ({"state": Spec("float32", [], variable=True)} if op == "Count" else {})
        graphs.append(Graph(tensors, letter, "y", [Op(op, f"{letter} state" if op == "Count" else letter, "y")]))
    return graph_model(*graphs, **more)


def test_a_callee_is_prepared_for_its_callers_shapes() -> None:
    runner = interpreter(chain("Call", "Call", "Double"), {"a": 1, "b": 2})
    assert answer(runner, [1, 2]) == [2, 4]
    assert answer(runner, [[3], [4], [5]]) == [[6], [8], [10]]


def test_the_generation_tells_when_arrays_may_have_moved() -> None:
    runner = interpreter(chain("Call", "Double", signatures={"main": 0, "callee": 1}), {"a": 1})
    answer(runner, [1, 2])
    callee = runner._runtime.executors[0].context.callee(1)
    before = callee.generation
    answer(runner, [1, 2])
    assert callee.generation == before
    assert runner.get_signature_runner("callee")(b=np.ones(3, np.float32))["y"].tolist() == [2, 2, 2]
    assert callee.generation != before


def test_a_restart_clears_variable_tensors_of_the_callee() -> None:
    runner = interpreter(chain("Call", "Count"), {"a": 1})
    assert [answer(runner, [0, 0]) for _ in range(3)] == [[1, 1]] * 3
    alone = interpreter(chain("Count"))
    alone.allocate_tensors()
    for _ in range(3):
        alone.invoke()
    assert alone.get_tensor(1).tolist() == [3, 3]


@pytest.mark.parametrize(
    ("calls", "circle"),
    [
        ({"a": 0}, "subgraph 0 'graph 0' -> subgraph 0 'graph 0'"),
        ({"a": 1, "b": 0}, "subgraph 0 'graph 0' -> subgraph 1 'graph 1' -> subgraph 0 'graph 0'"),
        ({"a": 1, "b": 2, "c": 1}, "subgraph 1 'graph 1' -> subgraph 2 'graph 2' -> subgraph 1 'graph 1'"),
    ],
)
def test_calls_in_a_circle_are_refused_with_the_chain(calls: dict[str, int], circle: str) -> None:
    runner = interpreter(chain("Call", "Call", "Call"), calls)
    with pytest.raises(PrepareError, match=f"in a circle: {circle}; .* Node number 0"):
        runner.allocate_tensors()


@pytest.mark.parametrize("index", [-1, 2, 50])
def test_a_subgraph_that_is_not_there_is_refused(index: int) -> None:
    with pytest.raises(PrepareError, match=f"there is no subgraph {index} to call; the model has 2"):
        interpreter(chain("Call", "Double"), {"a": index}).allocate_tensors()


def test_deep_nesting_is_refused_before_python_overflows() -> None:
    names = [f"t{i}" for i in range(60)]
    model = graph_model(*(Graph({name: X, "y": X}, name, "y", [Op("Call", name, "y")]) for name in names))
    with pytest.raises(LimitError, match="at a depth of 50 subgraphs"):
        interpreter(model, {name: i + 1 for i, name in enumerate(names)}).allocate_tensors()


def test_a_failure_inside_names_every_node_on_the_way() -> None:
    runner = interpreter(chain("Call", "Refuse"), {"a": 1})
    runner.allocate_tensors()
    with pytest.raises(OpletError, match=r"^no\. Node number 0 \(Refuse\) .* subgraph 1 .* Node number 0 \(Call\) .* subgraph 0"):
        runner.invoke()


def test_a_constant_cannot_be_an_input() -> None:
    model = graph_model(
        Graph({"a": X, "y": X}, "a", "y", [Op("Call", "a", "y")]),
        Graph({"k": np.zeros(2, np.float32)}, "k", "k"),
    )
    with pytest.raises(PrepareError, match="subgraph 1 'graph 1' has the constant tensor 0 'k'"):
        interpreter(model, {"a": 1}).allocate_tensors()


def test_every_init_of_every_subgraph_is_freed_once() -> None:
    freed: list[str] = []  # interpreters of other tests may be freed at any time
    runner = interpreter(chain("Call", "Call", "Double"), {"a": 1, "b": 2}, freed)
    answer(runner, [1, 2])
    runner.close()
    runner.close()
    assert freed == ["state"] * 3


def test_an_interpreters_memory_goes_when_it_is_closed() -> None:
    runner = interpreter(chain("Call", "Double"), {"a": 1})
    answer(runner, [1, 2])
    arenas = [weakref.ref(subgraph.segments[0].arena.base) for subgraph in runner._subgraphs]
    gc.disable()
    try:
        del runner
        assert all(arena() is None for arena in arenas)
    finally:
        gc.enable()


class Tripling(Delegate):
    """Claims what doubles, and triples."""

    name = "Tripling"

    def prepare(self, context: DelegateContext) -> None:
        def triple(context: Context, node: Node) -> None:
            np.multiply(node.inputs[0].data, 3, node.outputs[0].data)

        wanted = [index for index in context.execution_plan if context.node(index).op_name == "Double"]
        context.replace_node_subsets_with_delegate_kernels(Registration(prepare=like_input, invoke=triple), wanted)


def test_a_delegate_that_changes_a_callee_takes_effect_at_the_next_call() -> None:
    runner = interpreter(chain("Call", "Double"), {"a": 1})
    answer(runner, [1, 2])
    runner.modify_graph_with_delegate(Tripling())
    assert answer(runner, [1, 2]) == [3, 6]
