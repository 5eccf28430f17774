"""Interpreters of one model have its constants, and what kernels make of them, once; and never another model's."""

from __future__ import annotations

import gc
import os
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oplet import Context, Interpreter, ModelBuilder, MutableOpResolver, Node, OpResolver, Registration
from oplet.model import reading
from oplet.plugins.manager import PluginManager
from oplet.runtime.memory import remembered
from oplet.schema.enums import Padding
from oplet.schema.options import DepthwiseConv2DOptions
from oplet_testing import Spec, one_op_model

SIDE = 128
NUMPY = PluginManager(block=["oplet-compiled-ops"])


def layers(seed: int) -> bytes:
    """A fully connected layer whose weights are halves in the file."""
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    halves = np.random.default_rng(seed).standard_normal((SIDE, SIDE)).astype(np.float16)
    x = graph.add_tensor("x", "float32", (64, SIDE))
    h = graph.add_tensor("h", "float16", (SIDE, SIDE), data=halves)
    w = graph.add_tensor("w", "float32", (SIDE, SIDE))
    y = graph.add_tensor("y", "float32", (64, SIDE))
    graph.add_operator("DEQUANTIZE", [h], [w])
    graph.add_operator("FULLY_CONNECTED", [x, w, -1], [y])
    graph.set_inputs(x)
    graph.set_outputs(y)
    return builder.to_bytes()


def opened(model: Any, **settings: Any) -> Interpreter:
    settings = {"plugins": NUMPY, **settings}
    given = {"model_path": os.fspath(model)} if isinstance(model, Path) else {"model_content": model}
    interpreter = Interpreter(**given, **settings)
    interpreter.allocate_tensors()
    return interpreter


def derived(interpreter: Interpreter) -> list[np.ndarray[Any, Any]]:
    """The dequantized weights, and the layouts that kernels made."""
    [subgraph] = interpreter._subgraphs
    kept = [each.value for node in subgraph.nodes for each in (node.kernel_cache[0] or {}).values()]
    return [subgraph.tensors[2].data, *(value for value in kept if isinstance(value, np.ndarray) and value.size == SIDE * SIDE)]


def same(a: Interpreter, b: Interpreter) -> bool:
    pairs = list(zip(derived(a), derived(b), strict=True))
    assert len(pairs) >= 2
    shared = {np.shares_memory(x, y) for x, y in pairs}
    assert len(shared) == 1, "some values are shared, and others are not"
    return shared == {True}


def answer(interpreter: Interpreter) -> np.ndarray[Any, Any]:
    interpreter.set_tensor(0, np.eye(64, SIDE, dtype=np.float32))
    interpreter.invoke()
    return interpreter.get_tensor(3)


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files count as settled, however new they are."""
    monkeypatch.setattr(reading, "_is_settled", lambda status: True)


@pytest.mark.parametrize("use_mmap", [True, False])
def test_interpreters_of_one_file_share_what_is_made_of_its_constants(tmp_path: Path, use_mmap: bool) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(layers(0))
    a, b = opened(path, use_mmap=use_mmap), opened(path, use_mmap=use_mmap)
    assert same(a, b)
    assert not any(array.flags.writeable for array in derived(a))
    np.testing.assert_array_equal(answer(a), answer(b))
    assert np.shares_memory(a._subgraphs[0].tensors[1].data, b._subgraphs[0].tensors[1].data)


def test_interpreters_of_one_bytes_object_share_and_those_of_bytes_that_may_change_do_not() -> None:
    content = layers(0)
    assert same(opened(content), opened(content))
    assert same(opened(content), opened(memoryview(content)))
    assert not same(opened(content), opened(bytes(bytearray(content))))
    assert not same(opened(content), opened(bytearray(content)))
    changing = bytearray(content)
    first = opened(changing)
    begin = bytes(changing).index(np.random.default_rng(0).standard_normal(8).astype(np.float16).tobytes())
    before = answer(first)
    np.frombuffer(changing, np.float16, 8, begin)[:] = 7
    second = opened(changing)
    assert not same(first, second)
    np.testing.assert_array_equal(answer(first), before)
    assert (answer(second)[:8, 0] == 7).all()
    assert not (before[:8, 0] == 7).any()


def test_a_file_that_was_written_anew_has_its_own_values(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(layers(0))
    first = opened(path)
    expected = answer(first)
    other = tmp_path / "other.tflite"
    other.write_bytes(layers(1))
    os.replace(other, path)
    second = opened(path)
    assert not same(first, second)
    np.testing.assert_array_equal(answer(second), answer(opened(layers(1))))
    np.testing.assert_array_equal(answer(first), expected)


def test_a_file_that_was_just_written_shares_nothing_until_time_stamps_would_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_is_settled", lambda status: False)
    path = tmp_path / "model.tflite"
    path.write_bytes(layers(0))
    assert not same(opened(path), opened(path))
    first = opened(path)
    monkeypatch.setattr(reading, "_is_settled", lambda status: True)
    second, third = opened(path), opened(path)
    assert not same(first, second)
    assert same(second, third)


def test_values_are_freed_with_the_last_interpreter_or_plan_that_uses_them() -> None:
    content = layers(0)
    a, b = opened(content), opened(content)
    kept = [weakref.ref(array) for array in derived(a)[1:]]  # the first was computed again to be read here
    assert kept
    shared = a._model.shared_values
    assert shared is not None
    assert len(shared)
    a.close()
    del a
    gc.collect()
    assert all(reference() is not None for reference in kept)
    np.testing.assert_array_equal(answer(b), answer(opened(layers(0))))
    b.close()
    del b
    remembered.forget_plans()
    gc.collect()
    assert [reference() is None for reference in kept] == [True] * len(kept)
    assert not len(shared)


def test_a_resized_interpreter_keeps_to_itself_what_the_others_do_not_have() -> None:
    content = layers(0)
    a, b = opened(content), opened(content)
    expected = answer(b)
    a.resize_tensor_input(0, [2, SIDE])
    a.allocate_tensors()
    a.set_tensor(0, np.eye(2, SIDE, dtype=np.float32))
    a.invoke()
    np.testing.assert_allclose(a.get_tensor(3), expected[:2], rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(answer(b), expected)


def test_threads_that_open_a_model_at_the_same_time_get_one_value() -> None:
    content, gate, found = layers(0), threading.Barrier(6), []

    def open_one() -> None:
        gate.wait()
        found.append(opened(content))

    threads = [threading.Thread(target=open_one) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    assert all(same(found[0], other) for other in found[1:])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_shares_with_its_parent() -> None:
    content = layers(0)
    parent = opened(content)
    expected = answer(parent)
    child = os.fork()
    if not child:
        try:
            mine = opened(content)
            os._exit(0 if same(parent, mine) and np.array_equal(answer(mine), expected) else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_another_kernel_makes_its_own_value_and_one_that_does_not_ask_shares_none() -> None:
    made: list[str] = []
    content = one_op_model("Scaled", [Spec("float32", (3,)), np.ones(3, np.float32)], [Spec("float32", (3,))])

    def kernel(factor: float, shared: bool) -> OpResolver:
        def prepare(context: Context, node: Node) -> None:
            def make() -> Any:
                made.append("once")
                return node.inputs[1].data * np.float32(factor)

            node.prepared = node.cached("scaled", [node.inputs[1]], make, shared=shared)
            context.resize_tensor(node.outputs[0], (3,))

        def invoke(context: Context, node: Node) -> None:
            np.multiply(node.inputs[0].data, node.prepared, out=node.outputs[0].data)

        resolver = MutableOpResolver()
        resolver.add_custom("Scaled", Registration(prepare=prepare, invoke=invoke))
        return resolver

    def run(interpreter: Interpreter) -> float:
        interpreter.set_tensor(0, np.ones(3, np.float32))
        interpreter.invoke()
        return float(interpreter.get_tensor(2)[0])

    twice, thrice, private = kernel(2, True), kernel(3, True), kernel(5, False)
    several = [opened(content, op_resolver=each) for each in (twice, thrice, twice, private, private)]
    assert [run(each) for each in several] == [2, 3, 2, 5, 5]
    assert len(made) == 4
    assert not several[0]._subgraphs[0].nodes[0].prepared.flags.writeable
    assert several[3]._subgraphs[0].nodes[0].prepared.flags.writeable


def test_the_tenth_interpreter_takes_its_arena_and_no_weights() -> None:
    tracemalloc = pytest.importorskip("tracemalloc")
    content = layers(0)
    held = [opened(content) for _ in range(9)]
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        held.append(opened(content))
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    arena = sum(subgraph.arena_bytes for subgraph in held[0]._subgraphs)
    weights = 4 * SIDE * SIDE  # once dequantized, once transposed
    assert grown < arena + weights, f"{grown} bytes, of which the arena takes {arena}"


@pytest.mark.parametrize("type", ["float32", "int8"])
def test_what_layers_repeat_for_long_loops_is_made_once(type: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A depthwise convolution of few channels and an addition to a wide map: their repeated constants are larger than the file's."""
    monkeypatch.setenv("OPLET_PLANS", "off")  # the text of what a plan on disk depends on is an interpreter's own, and as large
    tracemalloc = pytest.importorskip("tracemalloc")
    content = narrow(type)
    held = [opened(content) for _ in range(2)]
    gc.collect()
    tracemalloc.start(8)
    try:
        held.append(opened(content))
        gc.collect()
        found = tracemalloc.take_snapshot().statistics("lineno")
    finally:
        tracemalloc.stop()
    arena = max(s.arena_bytes for s in held[0]._subgraphs)
    large = [each for each in found if each.size / each.count > 1024 and each.size < arena]
    assert not large


def narrow(type: str) -> bytes:
    random = np.random.default_rng(0)
    whole = type == "int8"
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    scale = {"scale": 0.1, "zero_point": 3} if whole else {}
    x, y, z = (graph.add_tensor(name, type, (1, 64, 64, 16), **scale) for name in "xyz")
    weights = random.integers(-127, 128, (1, 5, 5, 16)).astype(type)
    w = graph.add_tensor("w", type, weights.shape, data=weights, **({"scale": 0.01, "zero_point": 0} if whole else {}))
    bias = random.integers(-9, 9, 16).astype("int32" if whole else type)
    b = graph.add_tensor("b", str(bias.dtype), (16,), data=bias, **({"scale": 0.001, "zero_point": 0} if whole else {}))
    options = DepthwiseConv2DOptions(padding=Padding.SAME, stride_w=1, stride_h=1, depth_multiplier=1)
    graph.add_operator("DEPTHWISE_CONV_2D", [x, w, b], [y], options)
    c = graph.add_tensor("c", type, (16,), data=random.integers(0, 9, 16).astype(type), **scale)
    graph.add_operator("ADD", [y, c], [z])
    graph.set_inputs(x)
    graph.set_outputs(z)
    return builder.to_bytes()
