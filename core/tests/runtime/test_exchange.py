"""Inputs and outputs in arrays of the application: runs read and write them in place, and nothing else does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from core.tests.chains import ADD_ONE, F32, Computes, adding, interpret
from flatbuffers import flexbuffers
from numpy.typing import NDArray

from oplet import Interpreter, Model, ModelBuilder, MutableOpResolver, SimpleDelegate
from oplet.errors import ModelError
from oplet.schema.options import IfOptions
from oplet.schema.stablehlo_options import StableHLOCompositeOptions
from oplet.toolkit import SubgraphRunner, inline_composites
from oplet_testing import Spec, one_op_model

SHAPE = (3,)


def runner_of(interpreter: Interpreter, index: int = 0) -> SubgraphRunner:
    runner = SubgraphRunner(interpreter, index)
    runner.allocate()
    return runner


def places(runner: SubgraphRunner) -> dict[int, NDArray[Any]]:
    """New arrays for all inputs and outputs."""
    graph = runner.subgraph
    return {index: np.zeros(graph.tensors[index].shape, graph.tensors[index].dtype) for index in (*graph.inputs, *graph.outputs)}


def test_a_run_reads_and_writes_the_application_s_arrays() -> None:
    runner = runner_of(interpret(adding(3)))
    arrays = places(runner)
    assert set(runner.use_memory(arrays)) == {0, 3}
    for start in (1, 5):
        arrays[0][...] = start
        runner.invoke()
        assert arrays[3].tolist() == [start + 3] * 3
    assert runner.tensor(0).data is arrays[0]
    assert runner.tensor(3).data is arrays[3]


def test_memory_that_is_given_back_has_the_value_and_the_array_is_left_alone() -> None:
    runner = runner_of(interpret(adding(2)))
    own = runner.tensor(0).data
    arrays = places(runner)
    runner.use_memory(arrays)
    arrays[0][...] = 4
    assert set(runner.use_memory({0: None, 2: None})) == {0, 2}
    assert runner.tensor(0).data is own
    runner.invoke()
    assert runner.tensor(2).data.tolist() == [6, 6, 6]
    assert arrays[2].tolist() == [0, 0, 0]


def test_arrays_that_do_not_fit_and_tensors_that_cannot_move_stay_as_they_are() -> None:
    runner = runner_of(interpret(adding(2)))
    before = runner.tensor(0).data
    fixed = np.zeros(3, F32)
    fixed.flags.writeable = False
    for array in (np.zeros(4, F32), np.zeros(3, np.float64), np.zeros(6, F32)[::2], fixed):
        assert not runner.use_memory({0: array})
    assert not runner.use_memory({1: np.zeros(3, F32)})  # between the nodes
    assert runner.tensor(0).data is before


def test_a_subgraph_that_is_not_prepared_keeps_its_memory() -> None:
    runner = SubgraphRunner(interpret(adding(1)))
    runner.allocate()
    runner.resize(0, (4,))
    assert not runner.use_memory({0: np.zeros(4, F32)})


def test_a_resize_ends_it_and_an_input_that_keeps_its_shape_keeps_its_value() -> None:
    model = one_op_model("ADD", [Spec(F32, [3]), Spec(F32, [1])], [Spec(F32, [3])])
    runner = runner_of(Interpreter(model_content=model))
    arrays = places(runner)
    runner.use_memory(arrays)
    generation = runner.subgraph.generation
    arrays[0][...], arrays[1][...] = 2, 3
    runner.resize(1, (3,))
    runner.allocate()
    assert runner.subgraph.generation != generation
    runner.set(1, np.array([1, 2, 3], F32))
    runner.invoke()
    assert runner.tensor(2).data.tolist() == [3, 4, 5]
    assert arrays[2].tolist() == [0, 0, 0]


@pytest.mark.parametrize("close", [False, True])
def test_the_next_interpreter_of_the_model_takes_nothing_over(close: bool) -> None:
    model = one_op_model("ADD", [Spec(F32, [3])] * 2, [Spec(F32, [3])])
    first = Interpreter(model_content=model)
    runner = runner_of(first)
    arrays = places(runner)
    runner.use_memory(arrays)
    runner.invoke()
    if close:
        first.close()
    del first, runner
    second = Interpreter(model_content=model)
    second.allocate_tensors()
    second.set_tensor(0, np.ones(3, F32))
    second.invoke()
    assert second.get_tensor(2).tolist() == [1, 1, 1]
    assert not any(array.any() for array in arrays.values())


def test_an_interpreter_that_took_a_plan_over_has_its_own_nodes_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPLET_PLANS", "off")  # one from disk has no nodes of another interpreter
    model = one_op_model("ADD", [Spec(F32, [3])] * 2, [Spec(F32, [3])])
    first = Interpreter(model_content=model)
    first.allocate_tensors()
    first.invoke()
    [node] = first._subgraphs[0].nodes
    del first
    runner = runner_of(Interpreter(model_content=model))
    assert runner.subgraph.nodes == [node], "nothing was taken over, so that the test shows nothing"
    runner.set(0, np.ones(3, F32))
    arrays = places(runner)
    assert set(runner.use_memory({2: arrays[2]})) == {2}
    runner.invoke()
    assert arrays[2].tolist() == [1, 1, 1]


def test_what_a_delegate_s_kernel_reads_or_writes_stays_where_it_is() -> None:
    class Claims(SimpleDelegate):
        def is_node_supported(self, context: Any, node: Any) -> bool:
            return bool(node.index == 0)

        def create_kernel(self, params: Any) -> Any:
            return Computes(lambda x: x + 1)

    interpreter = interpret(adding(2))
    interpreter.modify_graph_with_delegate(Claims())
    runner = runner_of(interpreter)
    arrays = places(runner)
    assert set(runner.use_memory(arrays)) == {2}
    runner.set(0, np.zeros(3, F32))
    runner.invoke()
    assert arrays[2].tolist() == [2, 2, 2]


def test_a_subgraph_that_nodes_call_keeps_its_memory() -> None:
    builder = ModelBuilder()
    for name, op in (("main", None), ("then", "AddOne"), ("else", "AddOne")):
        graph = builder.add_subgraph(name)
        condition = [graph.add_tensor("condition", np.bool_, [])] if op is None else []
        x, y = graph.add_tensor("x", F32, SHAPE), graph.add_tensor("y", F32, SHAPE)
        if op is None:
            graph.add_operator("IF", [*condition, x], [y], IfOptions(then_subgraph_index=1, else_subgraph_index=2))
        else:
            graph.add_operator(op, [x], [y])
        graph.set_inputs(*condition, x)
        graph.set_outputs(y)
    resolver = MutableOpResolver()
    resolver.add_custom("AddOne", ADD_ONE)
    interpreter = Interpreter(model_content=builder.to_bytes(), op_resolver=resolver)
    main, called = runner_of(interpreter), runner_of(interpreter, 1)
    assert not called.use_memory({0: np.zeros(SHAPE, F32)})
    arrays = places(main)
    assert set(main.use_memory(arrays)) == set(arrays)
    main.invoke()
    assert arrays[main.subgraph.outputs[0]].tolist() == [1, 1, 1]


def test_a_subgraph_in_which_a_shape_depends_on_values_keeps_its_memory() -> None:
    model = one_op_model("RANGE", [Spec(F32, [])] * 3, [Spec(F32, [-1])])
    runner = runner_of(Interpreter(model_content=model))
    assert not runner.use_memory({0: np.zeros((), F32)})


#: How a run makes the new cache (`new`) of the old one, a value and its place, and maybe `other`.
UPDATES = {
    "in place": ["DYNAMIC_UPDATE_SLICE old value at -> new"],
    "after it was read": ["ABS old -> other", "DYNAMIC_UPDATE_SLICE old value at -> new"],
    "by a choice": ["LESS old value -> chosen", "SELECT_V2 chosen value old -> new"],
    "by several nodes": ["MUL old value -> other", "ADD other value -> new"],
    "before it is read": ["DYNAMIC_UPDATE_SLICE old value at -> new", "ABS old -> other"],
    "by one that reads it twice": ["MUL old old -> new"],
}


def updating(way: str, *, composite: bool = False) -> SubgraphRunner:
    """A cache of which a run makes another, by nodes of the graph or of a composite's decomposition."""
    builder = ModelBuilder()
    for inner in (False, True)[: 1 + composite]:
        graph = builder.add_subgraph("inner" if inner else "main")
        shapes = {"old": [4], "value": [1], "at": [1], "new": [4], "other": [4], "chosen": [4]}
        types = {"at": "int32", "chosen": "bool"}
        tensors = {name: graph.add_tensor(name, types.get(name, F32), shape) for name, shape in shapes.items()}
        if composite and not inner:
            attributes = np.frombuffer(bytes(flexbuffers.Dumps({})), np.uint8)
            options = StableHLOCompositeOptions(name="cache", decomposition_subgraph_index=1, composite_attributes=attributes)
            graph.add_operator("STABLEHLO_COMPOSITE", [*tensors.values()][:3], [tensors["new"]], options)
        for node in UPDATES[way] if inner or not composite else ():
            op, *reads, _, written = node.split()
            graph.add_operator(op, [tensors[name] for name in reads], [tensors[written]])
        graph.set_inputs(*[*tensors.values()][:3])
        graph.set_outputs(tensors["new"])
    interpreter = Interpreter(model_content=builder.to_bytes())
    inline_composites(interpreter)
    return runner_of(interpreter)


@pytest.mark.parametrize("composite", [False, True])
@pytest.mark.parametrize("way", ["in place", "after it was read", "by a choice", "by several nodes"])
def test_one_array_may_be_an_input_and_an_output_that_is_written_after_all_that_read_the_input(way: str, composite: bool) -> None:
    runner, apart = updating(way, composite=composite), updating(way)
    assert runner.can_overwrite(0, 3)
    assert not runner.can_overwrite(1, 3)
    cache = np.array([1, 2, 3, 4], F32)
    assert set(runner.use_memory({0: cache, 3: cache})) == {0, 3}
    for place in (2, 0):
        apart.set(0, cache.copy())
        for each in (runner, apart):
            each.set(1, np.array([place + 5], F32))
            each.set(2, np.array([place], np.int32))
            each.invoke()
        assert cache.tolist() == apart.tensor(3).data.tolist()
        assert runner.tensor(3).data is cache
    assert cache.tolist() != [1, 2, 3, 4]


@pytest.mark.parametrize("way", ["before it is read", "by one that reads it twice"])
def test_no_array_may_be_an_input_and_an_output_that_is_written_while_the_input_is_read(way: str) -> None:
    assert not updating(way).can_overwrite(0, 3)


def test_a_model_may_be_open_already_and_have_its_files_in_memory() -> None:
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x, y = graph.add_tensor("x", F32, [2]), graph.add_tensor("y", F32, [2])
    kept = graph.add_tensor("kept", F32, [2], external_buffer=builder.add_external_buffer("w", np.array([3, 4], F32)))
    graph.add_operator("ADD", [x, kept], [y])
    graph.set_inputs(x)
    graph.set_outputs(y)
    data = builder.to_bytes()
    with pytest.raises(ModelError, match="keeps constants in the file 'w'; open it by path"):
        runner_of(Interpreter(model_content=Model.from_bytes(data)))
    runner = runner_of(Interpreter(model_content=Model.from_bytes(data, external=builder.external_files())))
    runner.set(0, np.array([1, 1], F32))
    runner.invoke()
    assert runner.tensor(1).data.tolist() == [4, 5]
