"""What a caller may read after `invoke`, as in LiteRT: outputs that no node reads, and whatever a signature names."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from oplet import Interpreter, ModelBuilder, TensorType
from oplet.errors import TensorError
from oplet.schema.options import FloorDivOptions, PackOptions, ReshapeOptions, ShapeOptions, StridedSliceOptions
from oplet_testing import WrappingDelegate

X = np.random.default_rng(0).normal(size=(2, 8)).astype(np.float32)
DELEGATES = [(), ({0},), ({1, 2},), ({0, 3},), (None,)]


def best_three() -> tuple[bytes, dict[str, int]]:
    """TOPK_V2, whose indices nobody reads, and a chain behind its values that may take any memory that is free."""
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x, k = graph.add_tensor("x", "float32", [2, 8]), graph.add_tensor("k", "int32", [], data=np.array(3, np.int32))
    values, indices = graph.add_tensor("values", "float32", [2, 3]), graph.add_tensor("indices", "int32", [2, 3])
    graph.add_operator("TOPK_V2", [x, k], [values, indices])
    chain = [values]
    for number in range(4):
        chain.append(graph.add_tensor(f"c{number}", "float32", [2, 3]))
        graph.add_operator("RELU" if number % 2 else "TANH", [chain[-2]], [chain[-1]])
    graph.set_inputs(x)
    graph.set_outputs(chain[-1])
    builder.add_signature(
        "s", inputs={"x": x}, outputs={"y": chain[-1], "again": chain[-1], "early": chain[1], "values": values, "x": x, "k": k}
    )
    return builder.to_bytes(), {"indices": indices, "values": values, "early": chain[1], "late": chain[-2], "y": chain[-1]}


@pytest.mark.parametrize("claims", [(), ({1, 2},)], ids=str)  # inside a partition nobody sees it, in LiteRT either
def test_an_output_that_no_node_reads_keeps_its_value(claims: tuple[Any, ...]) -> None:
    content, tensors = best_three()
    interpreter = Interpreter(model_content=content, experimental_delegates=[WrappingDelegate(*claims)] if claims else None)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, X)
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(tensors["indices"]), np.argsort(-X, axis=1, kind="stable")[:, :3])


def test_a_tensor_that_was_read_still_gives_its_memory_to_others() -> None:
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    chain = [graph.add_tensor(f"c{number}", "float32", [64]) for number in range(6)]
    for source, target in itertools.pairwise(chain):
        graph.add_operator("TANH", [source], [target])
    graph.set_inputs(chain[0])
    graph.set_outputs(chain[-1])
    interpreter = Interpreter(model_content=builder.to_bytes(), plugins=["oplet-builtin-ops"])
    interpreter.allocate_tensors()
    interpreter.invoke()
    with pytest.raises(TensorError, match="was given to another tensor"):
        interpreter.get_tensor(chain[2])
    assert interpreter._subgraphs[0].arena_bytes <= 3 * 256


@pytest.mark.parametrize("claims", DELEGATES, ids=str)
def test_whatever_a_signature_names_as_an_output_is_read_after_the_run(claims: tuple[Any, ...]) -> None:
    content, _ = best_three()
    interpreter = Interpreter(model_content=content, experimental_delegates=[WrappingDelegate(*claims)] if claims else None)
    given = interpreter.get_signature_runner("s")(x=X)
    best = -np.sort(-X, axis=1)[:, :3]
    np.testing.assert_array_equal(given["values"], best)
    np.testing.assert_allclose(given["early"], np.tanh(best), rtol=1e-6)
    np.testing.assert_allclose(given["y"], np.maximum(np.tanh(np.maximum(np.tanh(best), 0)), 0), rtol=1e-5)
    np.testing.assert_array_equal(given["again"], given["y"])
    np.testing.assert_array_equal(given["x"], X)
    assert given["k"] == 3


def folded_shapes() -> tuple[bytes, int, int]:
    """(n, 16) to (n // 4, 4, 16) to (-1, 64): fits from a length of 4 on, and the file says 1."""
    builder = ModelBuilder()
    graph = builder.add_subgraph()

    def constant(value: Any) -> int:
        return graph.add_tensor("c", "int32", np.shape(value), data=np.array(value, np.int32))

    x, shape = graph.add_tensor("x", "float32", [-1, 16]), graph.add_tensor("shape", "int32", [2])
    length, quarter, wanted = (graph.add_tensor(name, "int32", size) for name, size in (("n", []), ("q", []), ("p", [3])))
    y, flat, z = (
        graph.add_tensor(name, "float32", size) for name, size in (("y", [-1, 4, 16]), ("f", [-1, 64]), ("z", [-1, 64]))
    )
    graph.add_operator("SHAPE", [x], [shape], ShapeOptions(out_type=TensorType.INT32))
    ends = constant([0]), constant([1]), constant([1])
    graph.add_operator("STRIDED_SLICE", [shape, *ends], [length], StridedSliceOptions(shrink_axis_mask=1))
    graph.add_operator("FLOOR_DIV", [length, constant(4)], [quarter], FloorDivOptions())
    graph.add_operator("PACK", [quarter, constant(4), constant(16)], [wanted], PackOptions(values_count=3))
    graph.add_operator("RESHAPE", [x, wanted], [y], ReshapeOptions())
    graph.add_operator("RESHAPE", [y, constant([-1, 64])], [flat], ReshapeOptions())
    graph.add_operator("RELU", [flat], [z])
    graph.set_inputs(x)
    graph.set_outputs(z)
    return builder.to_bytes(), x, z


@pytest.mark.parametrize("delegate", [None, "claims"])
def test_shapes_that_do_not_fit_before_a_resize_are_refused_by_invoke_and_not_by_allocate_tensors(delegate: str | None) -> None:
    content, x, z = folded_shapes()
    delegates = [WrappingDelegate({5, 6})] if delegate else None
    interpreter = Interpreter(model_content=content, experimental_delegates=delegates)
    interpreter.allocate_tensors()
    for size in (1, 8, 3, 4):
        interpreter.resize_tensor_input(x, [size, 16])
        interpreter.allocate_tensors()
        value = np.arange(size * 16, dtype=np.float32).reshape(size, 16)
        interpreter.set_tensor(x, value)
        if size < 4:
            with pytest.raises(RuntimeError, match=r"Node number 4 \(RESHAPE\) failed to (prepare|invoke)"):
                interpreter.invoke()
        else:
            interpreter.invoke()
            np.testing.assert_array_equal(interpreter.get_tensor(z), value.reshape(-1, 64))
