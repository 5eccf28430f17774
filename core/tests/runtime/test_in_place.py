"""Outputs in the memory of inputs: only where the kernel offers it and nobody misses the input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from core.tests.chains import like_input

from oplet import Context, Interpreter, MutableOpResolver, Node, Registration, Tensor
from oplet.errors import OpletError, TensorError
from oplet.runtime.memory import allocation
from oplet_testing import Graph, Op, Spec, graph_model, invoke

X = Spec("float32", [3])
Y = Spec("float32", [2, 3])


def prepare(context: Context, node: Node) -> None:
    context.resize_tensor(node.outputs[0], np.broadcast_shapes(*(tensor.shape for tensor in node.inputs)))
    node.in_place = node.inputs


def prepare_dynamic(context: Context, node: Node) -> None:
    context.set_dynamic(node.outputs[0])
    node.in_place = node.inputs


def prepare_wrong(context: Context, node: Node) -> None:
    node.in_place = node.outputs


def add(context: Context, node: Node) -> None:
    np.add(node.inputs[0].data, node.inputs[1].data, node.outputs[0].data)


def double(context: Context, node: Node) -> None:
    if node.outputs[0].is_dynamic:
        like_input(context, node)
    np.multiply(node.inputs[0].data, 2, node.outputs[0].data)


def make(graph: Graph, **arguments: Any) -> Interpreter:
    resolver = MutableOpResolver()
    for name, methods in {
        "Add": (prepare, add),
        "Double": (prepare, double),
        "Apart": (like_input, double),
        "Dynamic": (prepare_dynamic, double),
        "Wrong": (prepare_wrong, double),
    }.items():
        resolver.add_custom(name, Registration(prepare=methods[0], invoke=methods[1]))
    interpreter = Interpreter(model_content=graph_model(graph), op_resolver=resolver, plugins=[], **arguments)
    interpreter.allocate_tensors()
    return interpreter


def run(interpreter: Interpreter) -> list[Any]:
    shapes = [detail["shape"] for detail in interpreter.get_input_details()]
    values = [np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape) for shape in shapes]
    return [result[..., 0].tolist() for result in invoke(interpreter, *values)]


def tensor(interpreter: Interpreter, name: str) -> Tensor:
    return next(t for t in interpreter._subgraphs[0].tensors if t.name == name)


def together(interpreter: Interpreter, one: str, other: str) -> bool:
    return np.may_share_memory(tensor(interpreter, one).data, tensor(interpreter, other).data)


CHAIN = Graph(dict.fromkeys("xabcy", X), "x", "y", [Op("Double", *pair) for pair in ("xa", "ab", "bc", "cy")])


def test_a_chain_is_computed_in_one_place_beside_its_input() -> None:
    interpreter = make(CHAIN)
    assert run(interpreter) == run(interpreter) == [16]
    assert together(interpreter, "a", "y")
    assert not together(interpreter, "x", "a")
    assert interpreter._subgraphs[0].arena_bytes == 2 * 64


def test_what_was_written_over_is_refused_rather_than_wrong() -> None:
    interpreter = make(CHAIN)
    run(interpreter)
    for name in "abc":
        with pytest.raises(TensorError, match="experimental_preserve_all_tensors"):
            interpreter.get_tensor(tensor(interpreter, name).index)


def test_preserved_tensors_are_never_written_over() -> None:
    interpreter = make(CHAIN, experimental_preserve_all_tensors=True)
    run(interpreter)
    assert [interpreter.get_tensor(tensor(interpreter, name).index)[0] for name in "xabcy"] == [1, 2, 4, 8, 16]


def test_the_checking_mode_allows_what_was_offered() -> None:
    assert run(make(CHAIN, checks=True)) == [16]
    ops = [Op("Double", "x", "a"), Op("Dynamic", "a", "b")]
    assert run(make(Graph(dict.fromkeys("xab", X), "x", "b", ops), checks=True)) == [4]


@pytest.mark.parametrize(
    ("graph", "answers"),
    [
        (Graph(dict.fromkeys("xaby", X), "x", "y", [Op("Double", "x", "a"), Op("Double", "a", "b"), Op("Add", "a b", "y")]), [6]),
        (Graph(dict.fromkeys("xab", X), "x", "a b", [Op("Double", "x", "a"), Op("Double", "a", "b")]), [2, 4]),
        (Graph(dict.fromkeys("xab", X), "x", "b", [Op("Apart", "x", "a"), Op("Apart", "a", "b")]), [4]),
        (Graph({"x": X, "a": X, "z": Y, "b": Y}, "x z", "b", [Op("Double", "x", "a"), Op("Add", "a z", "b")]), [[3, 6]]),
        (Graph(dict.fromkeys("xab", X), "x", "b", [Op("Double", "x", "a"), Op("Dynamic", "a", "b")]), [4]),
        (Graph(dict.fromkeys("xab", X), "x", "b", [Op("Dynamic", "x", "a"), Op("Double", "a", "b")]), [4]),
    ],
    ids=["read later", "an output of the graph", "not offered", "of another size", "to a dynamic one", "of a dynamic one"],
)
def test_an_input_is_left_alone_that_is(graph: Graph, answers: list[Any]) -> None:
    interpreter = make(graph)
    assert run(interpreter) == run(interpreter) == answers
    assert not together(interpreter, "a", "b")


def test_an_input_that_is_given_twice_is_read_before_it_is_written() -> None:
    interpreter = make(Graph(dict.fromkeys("xay", X), "x", "y", [Op("Double", "x", "a"), Op("Add", "a a", "y")]))
    assert run(interpreter) == [4]
    assert together(interpreter, "a", "y")


def test_the_second_input_is_written_over_where_the_first_is_needed() -> None:
    ops = [Op("Double", "x", "a"), Op("Add", "x a", "y")]
    interpreter = make(Graph(dict.fromkeys("xay", X), "x", "y", ops))
    assert run(interpreter) == [3]
    assert together(interpreter, "a", "y")


def test_what_a_later_segment_reads_stays() -> None:
    ops = [Op("Double", "x", "a"), Op("Dynamic", "x", "d"), Op("Double", "a", "b"), Op("Add", "b d", "y")]
    interpreter = make(Graph(dict.fromkeys("xadby", X), "x", "y", ops))
    assert run(interpreter) == run(interpreter) == [6]


def test_a_kernel_may_offer_its_inputs_only() -> None:
    with pytest.raises(OpletError, match="offers to write over tensor 1 'y' .*, which is no input of its node"):
        make(Graph(dict.fromkeys("xy", X), "x", "y", [Op("Wrong", "x", "y")]))


@pytest.mark.parametrize("everything", [False, True])
def test_what_the_caller_may_read_is_zero_before_the_first_run(monkeypatch: pytest.MonkeyPatch, everything: bool) -> None:
    def dirty(nbytes: int, *, zeroed: bool = True) -> np.ndarray[Any, Any]:
        return np.full(nbytes, 0 if zeroed else 0xFF, np.uint8)

    monkeypatch.setattr(allocation, "aligned_bytes", dirty)
    interpreter = make(CHAIN, experimental_preserve_all_tensors=everything)
    for name in "xabcy" if everything else "xy":
        assert tensor(interpreter, name).data.tolist() == [0, 0, 0]
    assert run(interpreter)[0] == 16
