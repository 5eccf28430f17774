"""Absorbing: a node that runs others with itself, and runs alone where its kernel wants, or has to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from oplet import Context, Interpreter, MutableOpResolver, Node, Profiler, Registration, StalePlanError, ensure, ensure_fits
from oplet.errors import PrepareError, TensorError
from oplet.schema.options import WhileOptions
from oplet_testing.graphs import Graph, Op, graph_model
from oplet_testing.one_op import Spec

X = Spec("float32", [3])
#: Leading takes values from the start on, up to the first one that is below 0; Filled puts zeros behind them, up to three values.
MODEL = graph_model(Graph({"x": X, "y": X, "z": X}, "x", "z", [Op("Leading", "x", "y"), Op("Filled", "y", "z")]))


def _leading(values: Any) -> Any:
    return values[: int(np.argmax(np.append(values, -1) < 0))]


def _prepare_leading(context: Context, node: Node) -> None:
    context.set_dynamic(node.outputs[0])


def _run_leading(context: Context, node: Node) -> None:
    found = _leading(node.inputs[0].data)
    context.resize_tensor(node.outputs[0], found.shape)
    node.outputs[0].data[...] = found


def _prepare_filled(context: Context, node: Node) -> None:
    context.resize_tensor(node.outputs[0], (3,) if node.absorbed else (max(3, node.inputs[0].size),))


def _bind_filled(context: Context, node: Node) -> Callable[[], None]:
    def run() -> None:
        if node.absorbed:
            found = _leading(node.absorbed[0].inputs[0].data)
            if len(found) == 1:
                raise StalePlanError(node)
        else:
            found = node.inputs[0].data
        node.outputs[0].data[...] = 0
        node.outputs[0].data[: len(found)] = found

    return run


def _all(node: Node, makers: Sequence[Node]) -> Sequence[Node]:
    return makers


LEADING = Registration(prepare=_prepare_leading, invoke=_run_leading, pure=True, absorbable=True)
FILLED = Registration(prepare=_prepare_filled, bind=_bind_filled, pure=True, fuses=_all, speculative=True)


def opened(filled: Registration = FILLED, leading: Registration = LEADING, model: bytes = MODEL, **more: Any) -> Interpreter:
    resolver = MutableOpResolver()
    resolver.add_custom("Leading", leading)
    resolver.add_custom("Filled", filled)
    interpreter = Interpreter(model_content=model, op_resolver=resolver, **more)
    interpreter.allocate_tensors()
    return interpreter


def run(interpreter: Interpreter, *values: float) -> list[float]:
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.array(values, np.float32))
    interpreter.invoke()
    found: list[float] = interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).tolist()
    return found


def running(interpreter: Interpreter) -> list[str]:
    return [node.op_name for segment in interpreter._subgraphs[0].segments for node in segment.nodes]


def test_a_node_that_is_absorbed_does_not_run_and_the_shapes_after_it_are_known() -> None:
    interpreter = opened()
    assert interpreter.get_output_details()[0]["shape"].tolist() == [3]
    assert run(interpreter, 1, 2, -1) == [1, 2, 0]
    assert running(interpreter) == ["Filled"]


def test_a_shape_that_was_not_foreseen_has_the_nodes_run_one_by_one_from_then_on() -> None:
    interpreter = opened()
    assert run(interpreter, 1, 2, -1) == [1, 2, 0]
    assert run(interpreter, 5, -1, -1) == [5, 0, 0]
    assert run(interpreter, 1, 2, 3) == [1, 2, 3]
    assert running(interpreter) == ["Leading", "Filled"]
    interpreter.resize_tensor_input(0, [2])
    interpreter.allocate_tensors()
    assert run(interpreter, 1, -1) == [1, 0, 0]


def test_a_kernel_that_refuses_to_absorb_when_it_is_prepared_runs_its_node_alone() -> None:
    def prepare(context: Context, node: Node) -> None:
        ensure(not node.absorbed, "not these.")
        _prepare_filled(context, node)

    interpreter = opened(Registration(prepare=prepare, bind=_bind_filled, pure=True, fuses=_all, speculative=True))
    assert run(interpreter, 5, -1, -1) == [5, 0, 0]


@pytest.mark.parametrize(
    ("filled", "leading"),
    [
        (FILLED, Registration(prepare=_prepare_leading, invoke=_run_leading, pure=True)),
        (FILLED, Registration(prepare=_prepare_leading, invoke=_run_leading, absorbable=True)),
        (Registration(prepare=_prepare_filled, bind=_bind_filled, fuses=_all, speculative=True), LEADING),
        (Registration(prepare=_prepare_filled, bind=_bind_filled, pure=True), LEADING),
    ],
    ids=["not absorbable", "not pure", "the other not pure", "does not absorb"],
)
def test_only_pure_nodes_of_kernels_that_agree_are_absorbed(filled: Registration, leading: Registration) -> None:
    interpreter = opened(filled, leading)
    assert not interpreter._subgraphs[0].absorption.nodes
    assert run(interpreter, 5, -1, -1) == [5, 0, 0]


@pytest.mark.parametrize("setting", ["experimental_preserve_all_tensors", "checks"])
def test_where_each_tensor_is_to_be_there_no_node_is_absorbed(setting: str) -> None:
    interpreter = opened(**{setting: True})
    assert not interpreter._subgraphs[0].absorption.nodes
    assert run(interpreter, 1, 2, -1) == [1, 2, 0]


def test_a_model_with_two_ways_in_absorbs_none() -> None:
    graph = Graph({"x": X, "y": X, "z": X}, "x", "z", [Op("Leading", "x", "y"), Op("Filled", "y", "z")])
    interpreter = opened(model=graph_model(graph, graph, signatures={"one": 0, "other": 1}))
    assert not interpreter._subgraphs[0].absorption.nodes


def test_loops_that_share_a_body_are_begun_again_together() -> None:
    """The second loop finds a shape that was not foreseen; the first one, which has run, runs the same subgraph."""
    pytest.importorskip("oplet_builtin_ops")
    i, c = Spec("int32", []), Spec("bool", [])
    names = "i x", "j y", "k z"
    main = {name: i if name in "ijk" else X for pair in names for name in pair.split()}
    options = WhileOptions(cond_subgraph_index=1, body_subgraph_index=2)
    loops = [Op("WHILE", one, other, options) for one, other in pairwise(names)]
    body = {"i": i, "x": X, "y": X, "z": X, "n": X, "one": np.array(1, np.int32), "j": i, "less": np.array([0, 2, 0], np.float32)}
    ops = [Op("ADD", "i one", "j"), Op("Leading", "x", "y"), Op("Filled", "y", "z"), Op("SUB", "z less", "n")]
    again = [Op("LESS", "i two", "c")]
    condition = {"i": i, "x": X, "two": np.array(2, np.int32), "c": c}
    back = [loops[0], Op("SUB", "j two", "m"), loops[1]._replace(inputs="m y")]
    model = graph_model(
        Graph({**main, "two": np.array(2, np.int32), "m": i}, "i x", "y z", back),
        Graph(condition, "i x", "c", again),
        Graph(body, "i x", "j n", ops),
    )
    resolver = MutableOpResolver()
    resolver.add_custom("Leading", LEADING)
    resolver.add_custom("Filled", FILLED)
    found = []
    for preserved in (False, True):
        interpreter = Interpreter(model_content=model, op_resolver=resolver, experimental_preserve_all_tensors=preserved)
        interpreter.allocate_tensors()
        assert bool(interpreter._subgraphs[2].absorption.nodes) is not preserved
        for values in ([9, 9, 9], [9, 5, 5], [8, 9, 7]):
            interpreter.set_tensor(interpreter.get_input_details()[1]["index"], np.array(values, np.float32))
            interpreter.invoke()
            found.append([interpreter.get_tensor(details["index"]).tolist() for details in interpreter.get_output_details()])
    assert found[:3] == found[3:]


class _Fused:
    """A kernel of Doubled(x) = 2x, which computes the Shifted(x) = x + 1 before it, too."""

    def __init__(self, refuses: frozenset[int] = frozenset(), **more: Any) -> None:
        self.refuses = refuses
        self.registration = Registration(prepare=self.prepare, bind=self.bind, pure=True, fuses=_all, **more)

    def prepare(self, context: Context, node: Node) -> None:
        ensure(not (node.absorbed and node.index in self.refuses), "not this one.")
        for other in node.absorbed:
            context.resize_tensor(other.outputs[0], other.inputs[0].shape)
            node.main = other
        context.resize_tensor(node.outputs[0], node.inputs[0].shape)

    def bind(self, context: Context, node: Node) -> Callable[[], None]:
        def run() -> None:
            source, added = (node.absorbed[0].inputs[0], 1) if node.absorbed else (node.inputs[0], 0)
            node.outputs[0].data[...] = (source.data + np.float32(added)) * np.float32(2)

        return run


def _shift(context: Context, node: Node) -> None:
    node.outputs[0].data[...] = node.inputs[0].data + np.float32(1)


SHIFTED = Registration(invoke=_shift, pure=True)
TWICE = Graph(
    dict.fromkeys("xabcd", X),
    "x",
    "d",
    [Op("Shifted", "x", "a"), Op("Doubled", "a", "b"), Op("Shifted", "b", "c"), Op("Doubled", "c", "d")],
)
FUSABLE = graph_model(TWICE)


def fused(kernel: _Fused | None = None, model: Any = FUSABLE, **more: Any) -> Interpreter:
    resolver = MutableOpResolver()
    resolver.add_custom("Shifted", SHIFTED)
    resolver.add_custom("Doubled", (kernel or _Fused()).registration)
    interpreter = Interpreter(model_content=model, op_resolver=resolver, **more)
    interpreter.allocate_tensors()
    return interpreter


def test_a_kernel_fuses_pure_nodes_that_need_not_be_absorbable() -> None:
    interpreter = fused()
    assert run(interpreter, 0, 1, 2) == [6, 10, 14]
    assert running(interpreter) == ["Doubled", "Doubled"]


def test_fusing_needs_no_run_that_can_be_begun_again() -> None:
    interpreter = fused(model=graph_model(TWICE, TWICE, signatures={"one": 0, "other": 1}))
    assert run(interpreter, 0, 1, 2) == [6, 10, 14]
    assert running(interpreter) == ["Doubled", "Doubled"]


@pytest.mark.parametrize("preserved", [False, True])
def test_a_refused_resize_leaves_the_input_without_memory_fused_or_not(preserved: bool) -> None:
    """Fusing moves the refused node behind one that waits for the run, so that the first attempt allocates nothing that it must undo."""

    def wait(context: Context, node: Node) -> None:
        ensure_fits(node.inputs[0].size == 3, "only three.")

    def prepare_shifted(context: Context, node: Node) -> None:
        ensure(node.inputs[0].size == 3, "only three.")

    resolver = MutableOpResolver()
    resolver.add_custom("Shifted", SHIFTED.__replace__(prepare=prepare_shifted))
    resolver.add_custom("Waits", SHIFTED.__replace__(prepare=wait))
    resolver.add_custom("Doubled", _Fused().registration)
    ops = [Op("Shifted", "x", "a"), Op("Waits", "x", "w"), Op("Doubled", "a", "b")]
    model = graph_model(Graph(dict.fromkeys("xawb", X), "x", "w b", ops))
    interpreter = Interpreter(model_content=model, op_resolver=resolver, experimental_preserve_all_tensors=preserved)
    interpreter.allocate_tensors()
    interpreter.resize_tensor_input(0, [4])
    with pytest.raises(PrepareError):
        interpreter.allocate_tensors()
    with pytest.raises(TensorError, match="unallocated"):
        interpreter.set_tensor(0, np.zeros(4, np.float32))


def test_a_node_that_refuses_to_fuse_runs_alone_and_the_others_stay_fused() -> None:
    interpreter = fused(_Fused(frozenset({1})))
    assert run(interpreter, 0, 1, 2) == [6, 10, 14]
    assert running(interpreter) == ["Shifted", "Doubled", "Doubled"]


def test_where_several_refuse_to_fuse_all_run_alone() -> None:
    interpreter = fused(_Fused(frozenset({1, 3})))
    assert run(interpreter, 0, 1, 2) == [6, 10, 14]
    assert running(interpreter) == ["Shifted", "Doubled"] * 2


@pytest.mark.parametrize("setting", ["experimental_preserve_all_tensors", "checks"])
def test_where_each_tensor_is_to_be_there_no_node_is_fused(setting: str) -> None:
    interpreter = fused(**{setting: True})
    assert run(interpreter, 0, 1, 2) == [6, 10, 14]
    assert running(interpreter) == ["Shifted", "Doubled"] * 2


def test_a_tensor_that_is_never_made_cannot_be_read_and_others_can() -> None:
    interpreter = fused()
    run(interpreter, 0, 1, 2)
    with pytest.raises(TensorError, match="experimental_preserve_all_tensors"):
        interpreter.get_tensor(1)
    assert interpreter.get_tensor(4).tolist() == [6, 10, 14]


def test_a_node_whose_output_others_read_too_is_not_fused() -> None:
    graph = Graph(dict.fromkeys("xab", X), "x", "a b", [Op("Shifted", "x", "a"), Op("Doubled", "a", "b")])
    interpreter = fused(model=graph_model(graph))
    assert running(interpreter) == ["Shifted", "Doubled"]


def test_profiles_tell_the_time_of_fused_nodes_under_the_one_that_the_kernel_names() -> None:
    profiler = Profiler()
    run(fused(profiler=profiler), 0, 1, 2)
    assert [(event.node, event.op, event.label) for event in profiler.events] == [
        (0, "Shifted", "Shifted + Doubled"),
        (2, "Shifted", "Shifted + Doubled"),
    ]


class _Reading(Profiler):
    reads_tensors = True


def test_a_profiler_that_reads_tensors_sees_each_node_even_where_another_interpreter_left_a_fused_plan() -> None:
    content, kernel = bytes(bytearray(FUSABLE)), _Fused()
    run(fused(kernel, content), 0, 1, 2)
    reading = fused(kernel, content, profiler=_Reading())
    assert run(reading, 0, 1, 2) == [6, 10, 14]
    assert running(reading) == ["Shifted", "Doubled"] * 2
    assert reading.get_tensor(4).tolist() == [6, 10, 14]


def test_an_interpreter_takes_over_a_plan_with_fused_nodes_and_resizes_it() -> None:
    content, kernel = bytes(FUSABLE), _Fused()
    assert run(fused(kernel, content), 0, 1, 2) == [6, 10, 14]
    second = fused(kernel, content)
    assert run(second, 1, 2, 3) == [10, 14, 18]
    assert running(second) == ["Doubled", "Doubled"]
    with pytest.raises(TensorError):
        second.get_tensor(1)
    second.resize_tensor_input(0, [2])
    second.allocate_tensors()
    assert run(second, 0, 1) == [6, 10]
    assert running(second) == ["Doubled", "Doubled"]


def test_a_node_that_reads_a_variable_is_not_fused_as_it_would_read_it_too_late() -> None:
    """The state is read, then changed by another node, and only then comes the node that would fuse the reading one."""

    def keep(context: Context, node: Node) -> None:
        state, added, total = node.inputs[0], node.inputs[1], node.outputs[0]
        state.data[...] += added.data
        total.data[...] = state.data

    resolver = MutableOpResolver()
    resolver.add_custom("Shifted", SHIFTED)
    resolver.add_custom("Doubled", _Fused().registration)
    resolver.add_custom("Kept", Registration(invoke=keep))
    tensors = {"x": X, "state": Spec("float32", [3], variable=True), "a": X, "total": X, "b": X}
    ops = [Op("Shifted", "state", "a"), Op("Kept", "state x", "total"), Op("Doubled", "a", "b")]
    model = graph_model(Graph(tensors, "x", "b total", ops))
    interpreter = Interpreter(model_content=model, op_resolver=resolver)
    interpreter.allocate_tensors()
    assert run(interpreter, 1, 2, 3) == [2, 2, 2]
    assert run(interpreter, 1, 2, 3) == [4, 6, 8]


def test_a_view_of_a_tensor_that_is_never_made_is_refused() -> None:
    interpreter = fused()
    run(interpreter, 0, 1, 2)
    with pytest.raises((TensorError, ValueError)):
        interpreter.tensor(1)()
