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


def counting(dynamic: bool = False) -> bytes:
    """A model with state and two signatures: "step" adds `x` to `total` and writes it into `cache` at `at`, "scale" multiplies `total`.

    In `step`, `cache` can be written in place; `total` cannot, as two nodes read it. Where it is `dynamic`, no tensor can lie elsewhere.
    """
    builder = ModelBuilder()
    graph = builder.add_subgraph("step")
    x, total = (graph.add_tensor(name, np.float32, [1, 1, 4]) for name in ("x_in", "total_in"))
    cache, at = graph.add_tensor("cache_in", np.float32, [1, 8, 4]), graph.add_tensor("at_in", np.int32, [3])
    added, before = (graph.add_tensor(name, np.float32, [1, 1, 4]) for name in ("added", "before_out"))
    written, y = graph.add_tensor("written", np.float32, [1, 8, 4]), graph.add_tensor("y_out", np.float32, [1, 4])
    axis = graph.add_tensor("axis", np.int32, [1], data=None if dynamic else np.array([1], np.int32))
    graph.add_operator("ADD", [x, total], [added])
    graph.add_operator("FLOOR", [total], [before])
    graph.add_operator("DYNAMIC_UPDATE_SLICE", [cache, x, at], [written])
    graph.add_operator("SUM", [written, axis], [y])
    inputs = {"x": x, "total": total, "cache": cache, "at": at} | ({"axis": axis} if dynamic else {})
    outputs = {"y": y, "before": before, "total": added, "cache": written}
    graph.set_inputs(*inputs.values())
    graph.set_outputs(*outputs.values())
    builder.add_signature("step", inputs, outputs, graph)
    graph = builder.add_subgraph("scale")
    total, factor = graph.add_tensor("total_in", np.float32, [1, 1, 4]), graph.add_tensor("factor_in", np.float32, [1])
    scaled, y = (graph.add_tensor(name, np.float32, [1, 1, 4]) for name in ("scaled", "y_out"))
    graph.add_operator("MUL", [total, factor], [scaled])
    graph.add_operator("FLOOR", [scaled], [y])
    graph.set_inputs(total, factor)
    graph.set_outputs(scaled, y)
    builder.add_signature("scale", {"total": total, "factor": factor}, {"total": scaled, "y": y}, graph)
    return builder.to_bytes()
