"""What interpreters of one model have in common where compiled kernels serve it."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from plugins.compiled_ops.tests.compiled import is_compiled

from oplet import Interpreter, ModelBuilder
from oplet.schema.enums import Padding
from oplet.schema.options import Conv2DOptions

WIDE = 1024


@pytest.mark.parametrize("type", ["float32", "int8"])
def test_a_further_interpreter_makes_no_tables_of_its_own(type: str) -> None:
    """Biases, factors and offsets of a wide layer, arranged for the kernel's output stage, are the model's."""
    tracemalloc = pytest.importorskip("tracemalloc")
    model = wide_layer(type)
    held = [Interpreter(model_content=model) for _ in range(3)]
    for each in held[:2]:
        each.allocate_tensors()
    assert is_compiled(model)
    gc.collect()
    tracemalloc.start()
    try:
        held[2].allocate_tensors()
        gc.collect()
        found = tracemalloc.take_snapshot().statistics("traceback")
    finally:
        tracemalloc.stop()
    arena = max(subgraph.arena_bytes for subgraph in held[0]._subgraphs)
    assert not [each for each in found if each.size / each.count >= 4 * WIDE and each.size < arena]
    for each in held:
        each.set_tensor(0, np.ones((1, 16, 16, 64), type))
        each.invoke()
        np.testing.assert_array_equal(each.get_tensor(3), held[0].get_tensor(3))


def wide_layer(type: str) -> bytes:
    random = np.random.default_rng(0)
    whole = type == "int8"
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x = graph.add_tensor("x", type, (1, 16, 16, 64), **({"scale": 0.1, "zero_point": 3} if whole else {}))
    weights = random.integers(-9, 9, (WIDE, 1, 1, 64)).astype(type)
    w = graph.add_tensor("w", type, weights.shape, data=weights, **({"scale": 0.01, "zero_point": 0} if whole else {}))
    bias = random.integers(-9, 9, WIDE).astype("int32" if whole else type)
    b = graph.add_tensor("b", str(bias.dtype), (WIDE,), data=bias, **({"scale": 0.001, "zero_point": 0} if whole else {}))
    y = graph.add_tensor("y", type, (1, 16, 16, WIDE), **({"scale": 0.1, "zero_point": 3} if whole else {}))
    graph.add_operator("CONV_2D", [x, w, b], [y], Conv2DOptions(padding=Padding.SAME, stride_w=1, stride_h=1))
    graph.set_inputs(x)
    graph.set_outputs(y)
    return builder.to_bytes()
