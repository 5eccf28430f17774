"""Compiled GATHER_ND, SCATTER_ND, ONE_HOT and pairs that both repeat answer as the numpy kernels do, refusals included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plugins.compiled_ops.tests.compiled import is_compiled
from tests.budgets import examples

from oplet import Interpreter
from oplet.errors import InvokeError
from oplet.schema.options import AddOptions, GatherNdOptions, OneHotOptions, ScatterNdOptions
from oplet_testing import Spec, invoke, one_op_model

SLOWLY = settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))


@SLOWLY
@given(
    kind=st.sampled_from(["float32", "int8", "int16", "int32", "int64", "bool"]),
    index=st.sampled_from(["int16", "int32", "int64"]),
    depth=st.integers(0, 3),
    count=st.integers(1, 5),
    constant=st.booleans(),
    seed=st.integers(0, 99),
)
def test_gathered_slices_are_equal(
    kind: str, index: str, depth: int, count: int, constant: bool, seed: int, agree: Callable[..., None]
) -> None:
    random = np.random.default_rng(seed)
    shape = (3, 4, 2)
    source = random.integers(0, 2 if kind == "bool" else 100, shape).astype(kind)
    indices = np.stack([random.integers(0, n, count) for n in shape[:depth]], 1) if depth else np.zeros((count, 0))
    indices = indices.astype(index)
    given_indices: Any = indices if constant else Spec(index, indices.shape)
    model = one_op_model(
        "GATHER_ND", [Spec(kind, shape), given_indices], [Spec(kind, (count, *shape[depth:]))], GatherNdOptions(), version=5
    )
    assert is_compiled(model)
    agree(model, [source] if constant else [source, indices])


@pytest.mark.parametrize("op", ["GATHER_ND", "SCATTER_ND"])
@pytest.mark.parametrize("bad", [-1, 3, -(2**31), 2**31 - 1])
def test_an_index_out_of_bounds_is_refused_in_numpys_words_and_the_next_run_is_right(op: str, bad: int) -> None:
    fed, right = np.ones((2, 4), np.float32), np.array([[0], [2]], np.int32)
    if op == "GATHER_ND":
        model = one_op_model(op, [Spec("float32", (3, 4)), Spec("int32", (2, 1))], [Spec("float32", (2, 4))], GatherNdOptions())
        values = np.arange(12, dtype=np.float32).reshape(3, 4)
        feeds = [[values, np.array([[0], [bad]], np.int32)], [values, right]]
    else:
        inputs = [Spec("int32", (2, 1)), Spec("float32", (2, 4)), np.array([3, 4], np.int32)]
        model = one_op_model(op, inputs, [Spec("float32", (3, 4))], ScatterNdOptions())
        feeds = [[np.array([[0], [bad]], np.int32), fed], [right, fed]]
    assert is_compiled(model)
    told, answers = [], []
    for plugins in (["oplet-builtin-ops"], ["oplet-builtin-ops", "oplet-compiled-ops"]):
        interpreter = Interpreter(model_content=model, plugins=plugins)
        with pytest.raises(InvokeError) as error:
            invoke(interpreter, *feeds[0])
        told.append(str(error.value).partition("index")[2].partition("oplet-")[0])
        answers.append(invoke(interpreter, *feeds[1])[0])
    assert told[0] == told[1] != ""
    np.testing.assert_array_equal(*answers)


@SLOWLY
@given(
    kind=st.sampled_from(["float32", "int32", "int64", "int8", "uint8", "bool"]),
    index=st.sampled_from(["int32", "int64"]),
    axis=st.integers(-1, 2),
    depth=st.integers(1, 5),
    seed=st.integers(0, 99),
)
def test_one_hot_tables_are_equal(kind: str, index: str, axis: int, depth: int, seed: int, agree: Callable[..., None]) -> None:
    random = np.random.default_rng(seed)
    indices = random.integers(-2, depth + 2, (2, 3)).astype(index)
    if index == "int64":
        indices[0, 0] += 2**32  # LiteRT reads the lower half
    shape = [2, 3]
    shape.insert(axis if axis >= 0 else 2, depth)
    constants = [np.array(depth, np.int32), np.array(1, kind), np.array(0, kind)]
    model = one_op_model("ONE_HOT", [Spec(index, (2, 3)), *constants], [Spec(kind, shape)], OneHotOptions(axis=axis))
    assert is_compiled(model)
    agree(model, [indices])


@pytest.mark.parametrize("kind", ["float32", "int32", "int64", "int8"])
def test_slices_are_scattered_in_order(kind: str, agree: Callable[..., None]) -> None:
    random = np.random.default_rng(4)
    updates = (random.normal(size=(6, 2)) * 50).astype(kind)
    indices = np.array([[0, 1], [2, 0], [0, 1], [1, 1], [0, 1], [2, 0]], np.int32)
    inputs = [Spec("int32", indices.shape), Spec(kind, updates.shape), np.array([3, 2, 2], np.int32)]
    model = one_op_model("SCATTER_ND", inputs, [Spec(kind, (3, 2, 2))], ScatterNdOptions())
    assert is_compiled(model)
    agree(model, [indices, updates])


@pytest.mark.parametrize("op", ["ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM"])
@pytest.mark.parametrize("kind", ["float32", "int8", "int16"])
@pytest.mark.parametrize(
    "shapes",
    [((2, 1, 4, 1), (1, 3, 1, 5)), ((3, 1), (1, 4)), ((2, 1, 3, 1, 2), (1, 4, 1, 2, 1)), ((2, 1, 2, 1, 3), (2, 3, 2, 4, 3))],
)
def test_pairs_that_both_repeat_are_compiled_and_equal(
    op: str, kind: str, shapes: tuple[tuple[int, ...], ...], agree: Callable[..., None]
) -> None:
    if kind != "float32" and op not in ("ADD", "SUB", "MUL"):
        pytest.skip("numpy runs them")
    random = np.random.default_rng(6)
    output = np.broadcast_shapes(*shapes)
    if kind == "float32":
        specs, fed = (
            [Spec(kind, shape) for shape in shapes],
            [random.random(shape).astype(kind) + np.float32(0.5) for shape in shapes],
        )
        result = Spec(kind, output)
    else:
        zeros = [0, 0, 0] if kind == "int16" else [3, -7, 11]
        info = np.iinfo(kind)
        specs = [Spec(kind, shape, [0.03], [zero]) for shape, zero in zip(shapes, zeros)]
        fed = [random.integers(info.min, info.max + 1, shape).astype(kind) for shape in shapes]
        result = Spec(kind, output, [0.05], zeros[2:])
    model = one_op_model(op, specs, [result], AddOptions(pot_scale_int16=False) if op == "ADD" else None, version=2)
    assert is_compiled(model)
    agree(model, fed)
    agree(model, fed, threads=2)
