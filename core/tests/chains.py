"""Chains of a custom op that adds one, and the few kernels that tests of the core share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from oplet import Context, Delegate, DelegateKernel, Interpreter, ModelBuilder, MutableOpResolver, Node, Registration
from oplet_testing import Spec, chain_graph, elementwise, graph_model, invoke

__all__ = [
    "ADD_ONE",
    "F32",
    "Computes",
    "add_chain",
    "add_one",
    "adding",
    "answer",
    "cancelling",
    "double",
    "interpret",
    "like_input",
]

F32 = np.float32
X = Spec(F32, [3])


def like_input(context: Context, node: Node) -> None:
    """`prepare` of an op whose output has its input's shape."""
    context.resize_tensor(node.outputs[0], node.inputs[0].shape)


def add_one(context: Context, node: Node) -> None:
    np.add(node.inputs[0].data, F32(1), node.outputs[0].data)


def double(context: Context, node: Node) -> None:
    np.multiply(node.inputs[0].data, 2, out=node.outputs[0].data)


@contextmanager
def cancelling(interpreter: Interpreter) -> Iterator[None]:
    """Have another thread cancel what an interpreter runs, again and again: what has not begun yet is not cancelled."""
    over = threading.Event()

    def cancel() -> None:
        while not over.wait(0.02):
            interpreter.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


ADD_ONE = Registration(prepare=like_input, invoke=add_one)


class Computes(DelegateKernel):
    """A delegate's kernel for one node, which computes an elementwise function of its inputs."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.registration = elementwise(function)

    def prepare(self, context: Context, node: Node) -> None:
        self.registration.prepare(context, node)

    def invoke(self, context: Context, node: Node) -> None:
        self.registration.invoke(context, node)


def add_chain(
    builder: ModelBuilder,
    length: int,
    *,
    name: str = "main",
    op: str = "AddOne",
    shape: Any = (3,),
    outputs: tuple[int, ...] = (),
    **tensors: Any,
) -> None:
    """A subgraph of nodes in a row. Its tensors are t0, t1 and so on; the last is its output unless others are named."""
    graph = builder.add_subgraph(name)
    for index in range(length + 1):
        graph.add_tensor(f"t{index}", F32, shape, **tensors)
    for index in range(length):
        graph.add_operator(op, [index], [index + 1])
    graph.set_inputs(0)
    graph.set_outputs(*(outputs or (length,)))


def adding(length: int, spec: Spec = X, *, name: str = "main", outputs: Sequence[int] = ()) -> bytes:
    """A model that adds one so many times."""
    return graph_model(chain_graph(["AddOne"] * length, spec, name=name, outputs=outputs))


def interpret(content: bytes, *delegates: Delegate, resolved: bool = True, **arguments: Any) -> Interpreter:
    """An interpreter without plugins; `resolved` says whether it has the op that adds one."""
    ops = MutableOpResolver()
    if resolved:
        ops.add_custom("AddOne", ADD_ONE)
    arguments = {"op_resolver": ops, "plugins": [], **arguments}
    return Interpreter(model_content=content, experimental_delegates=list(delegates), **arguments)


def answer(interpreter: Interpreter, *values: Any) -> Any:
    """The last output for these values, as a list. Inputs take their shapes; without any, the input is 1, 2, 3."""
    feeds = [np.asarray(value, detail["dtype"]) for value, detail in zip(values or [[1, 2, 3]], interpreter.get_input_details())]
    shapes = [tuple(detail["shape"]) for detail in interpreter.get_input_details()]
    resize = any(feed.shape != shape for feed, shape in zip(feeds, shapes))
    return invoke(interpreter, *feeds, resize=resize)[-1].tolist()
