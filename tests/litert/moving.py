"""A model that moves a tensor of any type."""

from __future__ import annotations

import numpy as np

from oplet import ModelBuilder, TensorType

__all__ = ["moving_model"]


def moving_model(type: TensorType, shape: list[int]) -> bytes:
    """A model that gives its input x of this type and shape as its output y, by a node; its signature is "serve"."""
    builder = ModelBuilder(minimum_runtime=False)
    graph = builder.add_subgraph()
    x, y = (graph.add_tensor(name, type, shape) for name in "xy")
    wanted = graph.add_tensor("shape", "int32", [len(shape)], data=np.array(shape, np.int32))
    graph.add_operator("RESHAPE", [x, wanted], [y])
    graph.set_inputs(x)
    graph.set_outputs(y)
    builder.add_signature("serve", {"x": x}, {"y": y})
    return builder.to_bytes()
