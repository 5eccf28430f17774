"""Constants that are computed from the file's, or unpacked, are let go once kernels have made of them what they need, and come again where they
are read."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oplet import Interpreter, Limits, ModelBuilder
from oplet.errors import LimitError, PrepareError
from oplet.model import reading
from oplet.plugins.manager import PluginManager
from oplet.runtime import loading
from oplet.runtime.execution import folding
from oplet.schema.enums import TensorType
from oplet.schema.options import FullyConnectedOptions

SIDE = 256
NUMPY = PluginManager(block=["oplet-compiled-ops"])
HALVES = np.random.default_rng(0).standard_normal((SIDE, SIDE)).astype(np.float16)
#: Tensors of the model: the halves turned, the weights, the output.
TURNED, WEIGHTS, OUTPUT = 3, 4, 5


def layers() -> bytes:
    """A fully connected layer whose weights are halves in the file, in another order."""
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x = graph.add_tensor("x", "float32", (64, SIDE))
    h = graph.add_tensor("h", "float16", (SIDE, SIDE), data=np.ascontiguousarray(HALVES.T))
    order = graph.add_tensor("order", "int32", (2,), data=np.array([1, 0], np.int32))
    turned = graph.add_tensor("turned", "float16", (SIDE, SIDE))
    w = graph.add_tensor("w", "float32", (SIDE, SIDE))
    y = graph.add_tensor("y", "float32", (64, SIDE))
    graph.add_operator("TRANSPOSE", [h, order], [turned])
    graph.add_operator("DEQUANTIZE", [turned], [w])
    graph.add_operator("FULLY_CONNECTED", [x, w, -1], [y])
    graph.set_inputs(x)
    graph.set_outputs(y)
    return builder.to_bytes()


def opened(content: bytes | Path, **settings: Any) -> Interpreter:
    given = {"model_path": os.fspath(content)} if isinstance(content, Path) else {"model_content": content}
    interpreter = Interpreter(**given, plugins=NUMPY, **settings)  # type: ignore[arg-type]
    interpreter.allocate_tensors()
    return interpreter


def answer(interpreter: Interpreter) -> Any:
    interpreter.set_tensor(0, np.eye(64, SIDE, dtype=np.float32))
    interpreter.invoke()
    return interpreter.get_tensor(OUTPUT)


def let_go(interpreter: Interpreter) -> list[int]:
    return [tensor.index for tensor in interpreter._subgraphs[0].tensors if tensor.is_let_go]


def test_computed_weights_are_not_held_beside_the_layout_that_a_kernel_made() -> None:
    tracemalloc = pytest.importorskip("tracemalloc")
    opened(layers())
    content = layers()
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        interpreter = opened(content)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert let_go(interpreter) == [TURNED, WEIGHTS]
    arena = sum(subgraph.arena_bytes for subgraph in interpreter._subgraphs)
    assert grown < arena + 1.5 * 4 * SIDE * SIDE
    np.testing.assert_array_equal(answer(interpreter), HALVES[:, :64].T.astype(np.float32))


def test_a_computed_constant_that_was_let_go_can_still_be_read() -> None:
    interpreter = opened(layers())
    np.testing.assert_array_equal(interpreter.get_tensor(WEIGHTS), HALVES.astype(np.float32))
    assert let_go(interpreter) == [TURNED]  # it was computed for the other, and let go again
    np.testing.assert_array_equal(interpreter.get_tensor(TURNED), HALVES)
    assert not interpreter._subgraphs[0].tensors[WEIGHTS].data.flags.writeable
    np.testing.assert_array_equal(answer(interpreter), HALVES[:, :64].T.astype(np.float32))


def test_a_further_interpreter_computes_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    content = layers()
    first = opened(content)
    ran: list[object] = []
    run = folding._run
    monkeypatch.setattr(folding, "_run", lambda context, node: (ran.append(node), run(context, node)))
    second = opened(content)
    assert not ran
    np.testing.assert_array_equal(answer(second), answer(first))
    np.testing.assert_array_equal(second.get_tensor(WEIGHTS), HALVES.astype(np.float32))
    assert len(ran) == 2
    assert np.shares_memory(first._subgraphs[0].tensors[WEIGHTS].data, second._subgraphs[0].tensors[WEIGHTS].data)
    assert len(ran) == 2


def test_answers_stay_the_same_when_the_graph_is_prepared_anew() -> None:
    interpreter = opened(layers())
    wanted = answer(interpreter)
    for rows in (1, 3, 64):
        interpreter.resize_tensor_input(0, [rows, SIDE])
        interpreter.allocate_tensors()
        interpreter.set_tensor(0, np.eye(rows, SIDE, dtype=np.float32))
        interpreter.invoke()
        np.testing.assert_allclose(interpreter.get_tensor(OUTPUT), wanted[:rows], rtol=1e-5, atol=1e-5)


def test_a_constant_whose_computation_was_stopped_is_computed_at_the_next_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    interpreter = opened(layers())
    run = folding._run

    def fail(context: Any, node: Any) -> None:
        node.outputs[0].set_memory(np.zeros(node.outputs[0].shape, node.outputs[0].dtype))  # as far as it came
        raise PrepareError("it was stopped.")

    monkeypatch.setattr(folding, "_run", fail)
    with pytest.raises(PrepareError):
        interpreter.get_tensor(WEIGHTS)
    monkeypatch.setattr(folding, "_run", run)
    np.testing.assert_array_equal(interpreter.get_tensor(WEIGHTS), HALVES.astype(np.float32))


def test_an_interpreter_that_takes_over_a_plan_reads_constants_that_were_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_is_settled", lambda status: True)
    path = tmp_path / "model.tflite"
    path.write_bytes(layers())
    for _ in range(3):
        interpreter = opened(path)
        np.testing.assert_array_equal(answer(interpreter), HALVES[:, :64].T.astype(np.float32))
        np.testing.assert_array_equal(interpreter.get_tensor(WEIGHTS), HALVES.astype(np.float32))
        interpreter.close()


def test_all_tensors_are_kept_where_that_was_asked_for() -> None:
    interpreter = opened(layers(), experimental_preserve_all_tensors=True)
    assert let_go(interpreter) == []


FOURS = np.random.default_rng(1).integers(-8, 8, (SIDE, SIDE), np.int8)


def packed(signatures: int = 3) -> bytes:
    """Signatures, each a fully connected layer with the same int4 weights."""
    builder = ModelBuilder()
    bytes_of = (FOURS[:, ::2] & 15 | FOURS[:, 1::2] << 4).astype(np.uint8).tobytes()
    weights = builder.add_buffer(bytes_of)
    for rows in range(1, signatures + 1):
        graph = builder.add_subgraph(f"of_{rows}")
        x = graph.add_tensor("x", "float32", (rows, SIDE))
        w = graph.add_tensor("w", TensorType.INT4, (SIDE, SIDE), buffer=weights, scale=np.full(SIDE, 0.25, np.float32))
        y = graph.add_tensor("y", "float32", (rows, SIDE))
        graph.add_operator("FULLY_CONNECTED", [x, w, None], [y], FullyConnectedOptions())
        graph.set_inputs(x)
        graph.set_outputs(y)
        builder.add_signature(f"of_{rows}", {"x": x}, {"y": y}, graph)
    return builder.to_bytes()


@pytest.mark.parametrize("plugins", [NUMPY, None], ids=["numpy", "compiled"])
def test_unpacked_integers_are_shared_by_signatures_and_not_held_beside_what_kernels_made_of_them(
    plugins: PluginManager | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []
    unpack = loading.unpack
    monkeypatch.setattr(loading, "unpack", lambda raw, type, count: (counts.append(count), unpack(raw, type, count))[1])
    interpreter = Interpreter(model_content=packed(), plugins=plugins)
    for rows in (3, 1, 2):
        x = np.eye(rows, SIDE, dtype=np.float32)
        np.testing.assert_allclose(interpreter.get_signature_runner(f"of_{rows}")(x=x)["y"], FOURS.T[:rows] / 4, rtol=1e-5)
    weights = [subgraph.tensors[1] for subgraph in interpreter.subgraphs]
    assert all(tensor.is_let_go for tensor in weights)
    told = len(counts)
    assert told <= (6 if plugins is NUMPY else 1)  # each of numpy's kernels sums them and arranges them for its number of rows
    np.testing.assert_array_equal(weights[0].data, FOURS)
    assert weights[1].data is weights[0].data or np.shares_memory(weights[1].data, weights[0].data)
    assert len(counts) == told + 1
    assert not weights[0].data.flags.writeable


def test_unpacked_integers_count_once_however_often_they_are_read_again() -> None:
    interpreter = Interpreter(model_content=packed(1), limits=Limits(max_arena_bytes=64 * SIDE * SIDE), plugins=NUMPY)
    for rows in range(1, 100):
        interpreter.resize_tensor_input(0, [rows, SIDE])
        interpreter.allocate_tensors()
        np.testing.assert_array_equal(interpreter.get_tensor(1), FOURS)
    with pytest.raises(LimitError, match="once it is unpacked"):
        Interpreter(model_content=packed(1), limits=Limits(max_arena_bytes=SIDE * SIDE - 1), plugins=NUMPY).get_tensor(1)
