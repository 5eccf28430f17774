"""Models for the tests: types of the protocol, free dimensions, signatures."""

from __future__ import annotations

from typing import Any

import numpy as np

from oplet import ModelBuilder, TensorType


def mirror(dtype: Any, shape: list[int], signature: list[int] | None = None, op: str = "FLOOR") -> bytes:
    """A model of one node from `x` to `y`: FLOOR, or RESHAPE to the same shape, which gives what it gets."""
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    dtype = TensorType.STRING if dtype is object else dtype
    x = graph.add_tensor("x", dtype, shape, shape_signature=signature)
    y = graph.add_tensor("y", dtype, shape, shape_signature=signature)
    inputs = [x, graph.add_tensor("shape", np.int32, [len(shape)], data=np.array(shape, np.int32))] if op == "RESHAPE" else [x]
    graph.add_operator(op, inputs, [y])
    graph.set_inputs(x)
    graph.set_outputs(y)
    return builder.to_bytes()


def two_signatures() -> bytes:
    """A model with the signatures "down" (FLOOR) and "up" (CEIL), each from `a` to `b`."""
    builder = ModelBuilder()
    for number, (key, op) in enumerate((("down", "FLOOR"), ("up", "CEIL"))):
        graph = builder.add_subgraph(key)
        x = graph.add_tensor(f"x{number}", np.float32, [1, 2])
        y = graph.add_tensor(f"y{number}", np.float32, [1, 2])
        graph.add_operator(op, [x], [y])
        graph.set_inputs(x)
        graph.set_outputs(y)
        builder.add_signature(key, {"a": x}, {"b": y}, graph)
    return builder.to_bytes()
