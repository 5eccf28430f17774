"""Chains of a custom op that adds one, for tests of what goes on around kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from oplet import Context, Delegate, Interpreter, ModelBuilder, MutableOpResolver, Node, Registration

__all__ = ["ADD_ONE", "F32", "add_chain", "add_one", "chain", "interpret", "like_input"]

F32 = np.float32


def like_input(context: Context, node: Node) -> None:
    context.resize_tensor(node.outputs[0], node.inputs[0].shape)


def add_one(context: Context, node: Node) -> None:
    np.add(node.inputs[0].data, F32(1), node.outputs[0].data)


ADD_ONE = Registration(prepare=like_input, invoke=add_one)


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


def chain(length: int, **about: Any) -> bytes:
    """A model of one such subgraph."""
    builder = ModelBuilder()
    add_chain(builder, length, **about)
    return builder.to_bytes()


def interpret(content: bytes, *delegates: Delegate, resolved: bool = True, **arguments: Any) -> Interpreter:
    """An interpreter without plugins; `resolved` says whether it has the op that adds one."""
    ops = MutableOpResolver()
    if resolved:
        ops.add_custom("AddOne", ADD_ONE)
    arguments = {"op_resolver": ops, "plugins": [], **arguments}
    return Interpreter(model_content=content, experimental_delegates=list(delegates), **arguments)
