"""Joined nodes: compiled kernels with numpy's copies between them run as one call, and answer as they do one by one."""

from __future__ import annotations

import itertools
import os
from typing import Any

import numpy as np
import pytest

from oplet import Interpreter, ModelBuilder, Profiler
from oplet.schema.options import ConcatenationOptions, GeluOptions, SoftmaxOptions
from oplet_compiled_ops.shaping import COPY, copy_arguments
from oplet_testing import invoke
from oplet_testing.graphs import Graph, Op, graph_model
from oplet_testing.one_op import Spec


def block(shape: tuple[int, int], heads: int) -> bytes:
    """A model like a transformer's block: a product, its halves turned and joined again, softmax, GELU, a sum."""
    rows, columns = shape
    random = np.random.default_rng(0)
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    number = itertools.count()

    def constant(values: Any) -> int:
        return graph.add_tensor(f"c{next(number)}", np.asarray(values).dtype, np.shape(values), data=np.asarray(values))

    def tensor(*shape: int) -> int:
        return graph.add_tensor(f"t{next(number)}", np.float32, shape)

    def node(op: str, inputs: list[int], shape: tuple[int, ...], options: Any = None) -> int:
        output = tensor(*shape)
        graph.add_operator(op, inputs, [output], options)
        return output

    x = tensor(rows, columns)
    weights = constant(random.standard_normal((columns, columns)).astype(np.float32))
    y = node("FULLY_CONNECTED", [x, weights, constant(np.ones(columns, np.float32))], shape)
    split = columns // heads
    y = node("RESHAPE", [y, constant(np.int32([rows, heads, split]))], (rows, heads, split))
    y = node("TRANSPOSE", [y, constant(np.int32([1, 0, 2]))], (heads, rows, split))
    first = node("SLICE", [y, constant(np.int32([0, 1, 0])), constant(np.int32([-1, -1, -1]))], (heads, rows - 1, split))
    last = node("SLICE", [y, constant(np.int32([0, 0, 0])), constant(np.int32([-1, 1, -1]))], (heads, 1, split))
    rolled = node("CONCATENATION", [first, last], (heads, rows, split), ConcatenationOptions(axis=1))
    turned = node("TRANSPOSE", [rolled, constant(np.int32([0, 2, 1]))], (heads, split, rows))
    scores = node("BATCH_MATMUL", [y, turned], (heads, rows, rows))
    scores = node("SOFTMAX", [scores], (heads, rows, rows), SoftmaxOptions(beta=1.0))
    y = node("BATCH_MATMUL", [scores, rolled], (heads, rows, split))
    y = node("TRANSPOSE", [y, constant(np.int32([1, 0, 2]))], (rows, heads, split))
    y = node("RESHAPE", [y, constant(np.int32([rows, columns]))], shape)
    y = node("GELU", [y], shape, GeluOptions())
    y = node("PAD", [y, constant(np.int32([[1, 0], [0, 2]]))], (rows + 1, columns + 2))
    y = node("TANH", [y], (rows + 1, columns + 2))
    graph.set_inputs(x)
    graph.set_outputs(y)
    return builder.to_bytes()


@pytest.mark.sweep
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("shape", "heads"), [((6, 32), 2), ((49, 48), 3), ((130, 64), 2)])
def test_a_block_of_compiled_nodes_answers_the_same_in_every_run(shape: tuple[int, int], heads: int, threads: int) -> None:
    model = block(shape, heads)
    interpreter = Interpreter(model_content=model, num_threads=threads)
    numpy_alone = Interpreter(model_content=model, plugins=["builtin_ops"])
    random = np.random.default_rng(1)
    first, second = random.standard_normal((2, *shape)).astype(np.float32)
    [before] = invoke(interpreter, first)
    [other] = invoke(interpreter, second)
    [after] = invoke(interpreter, first)
    assert np.array_equal(before, after)
    assert np.array_equal(other, invoke(Interpreter(model_content=model, num_threads=threads), second)[0])
    np.testing.assert_allclose(before, invoke(numpy_alone, first)[0], rtol=1e-4, atol=2e-6)
    np.testing.assert_allclose(other, invoke(numpy_alone, second)[0], rtol=1e-4, atol=2e-6)


def test_all_nodes_of_a_block_are_one_step() -> None:
    interpreter = Interpreter(model_content=block((6, 32), 2), num_threads=1)
    for _ in range(2):
        invoke(interpreter, np.ones((6, 32), np.float32))
    [segment] = interpreter._subgraphs[0].segments
    assert segment.is_one_step
    profiler = Profiler()
    profiled = Interpreter(model_content=block((6, 32), 2), num_threads=1, profiler=profiler)
    invoke(profiled, np.ones((6, 32), np.float32))
    assert len(profiler.events) == len(segment.nodes)


@pytest.mark.parametrize("dtype", ["float32", "int8", "int64"])
def test_reversed_and_repeated_numbers_are_joined_and_are_numpys(dtype: str) -> None:
    shapes = {"a": (2, 3, 4), "b": (2, 3, 4), "c": (4, 3, 20), "d": (4, 3, 20), "e": (4, 18, 40)}
    ops = [
        Op("REVERSE_V2", "a first", "b"),
        Op("TILE", "b times", "c"),
        Op("REVERSE_V2", "c last", "d"),
        Op("TILE", "d more", "e"),
    ]
    constants = {"first": [0, 2], "times": [2, 1, 5], "last": [1], "more": [1, 6, 2]}
    tensors = {name: Spec(dtype, shape) for name, shape in shapes.items()}
    values = {name: np.array(value, np.int32) for name, value in constants.items()}
    model = graph_model(Graph({**tensors, **values, "f": tensors["e"]}, "a", "f", [*ops, Op("MAXIMUM", "e e", "f")]))
    interpreter = Interpreter(model_content=model)
    x = np.arange(24).reshape(2, 3, 4).astype(dtype)
    wanted = np.tile(np.tile(x[::-1, :, ::-1], (2, 1, 5))[:, ::-1], (1, 6, 2))
    for _ in range(3):
        np.testing.assert_array_equal(invoke(interpreter, x)[0], wanted)
    [segment] = interpreter._subgraphs[0].segments
    assert dtype != "float32" or segment.is_one_step


def test_joined_nodes_outlive_what_made_them() -> None:
    interpreter = Interpreter(model_content=block((6, 32), 2), num_threads=1)
    x = np.random.default_rng(2).standard_normal((6, 32)).astype(np.float32)
    [expected] = invoke(interpreter, x)
    invoke(interpreter, x)
    [segment] = interpreter._subgraphs[0].segments
    segment.thunks.clear()
    _ = [os.urandom(100) for _ in range(100)]
    assert np.array_equal(invoke(interpreter, x)[0], expected)


@pytest.mark.parametrize("seed", range(4))
def test_copies_of_any_views_are_numpys(seed: int) -> None:
    random = np.random.default_rng(seed)
    copy = COPY.compiled()
    for _ in range(400):
        axes = int(random.integers(1, 6))
        shape = tuple(random.integers(1, 40 if axes < 3 else 7, axes))
        base = random.integers(0, 255, shape).astype(random.choice(["u1", "i2", "f4", "i8"]))
        source = base.transpose(random.permutation(axes))
        if random.random() < 0.5:
            source = source[tuple(slice(None, None, random.choice([1, 1, 2, -1])) for _ in range(axes))]
        if random.random() < 0.2:
            source = np.broadcast_to(source[..., :1], source.shape)
        inside = tuple(slice(1, 1 + length) for length in source.shape)
        whole = np.zeros(tuple(length + 2 for length in source.shape), source.dtype)
        expected = whole.copy()
        expected[inside] = source
        arguments = copy_arguments(whole[inside], source)
        assert arguments is not None
        copy(*arguments)
        assert np.array_equal(whole, expected), (source.shape, source.strides)


def test_copies_between_overlapping_views_and_of_other_kinds_are_left_to_numpy() -> None:
    values = np.arange(10, dtype=np.float32)
    assert copy_arguments(values[1:], values[:-1]) is None
    assert copy_arguments(np.zeros(10, np.float64), values) is None
    assert copy_arguments(np.zeros(3, np.complex128), np.zeros(3, np.complex128)) is None
    every = np.zeros((3,) * 6, np.float32)
    assert copy_arguments(np.empty_like(every), every) is not None  # one axis
    assert copy_arguments(np.empty((3,) * 6, np.float32), every.T) is None  # six that part
