"""Ops with a body in another subgraph: REDUCE_WINDOW and STABLEHLO_REDUCE_WINDOW, _REDUCE, _SCATTER, _SORT."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from plugins.builtin_ops.tests.control.bodies import model_with_body

from oplet.errors import OpletError
from oplet.schema.enums import ReduceWindowFunction, StablehloComparisonDirection
from oplet.schema.stablehlo_options import (
    ReduceWindowOptions,
    StablehloCompareOptions,
    StablehloReduceOptions,
    StablehloReduceWindowOptions,
    StablehloScatterOptions,
    StablehloSortOptions,
)
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec


def model_of_chain(
    op: str, inputs: Sequence[Any], outputs: Sequence[Any], options: Any, body: Sequence[Any], values: Sequence[str], result: str
) -> bytes:
    """A model of one op whose body is nodes of (op, inputs, options) that read the body's inputs; the last one's value, of type
    `result`, is the body's.
    """
    steps = [(name, operands, result, chosen) for name, operands, chosen in body]
    return model_with_body(op, inputs, outputs, options, values, steps, [len(values) + len(steps) - 1])


def longs(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def draw(type: str, *shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 2 if type == "bool" else 50, shape).astype(type)


WINDOWS = [
    # dimensions, strides, base dilations, window dilations, padding
    ((2, 3), (1, 1), (1, 1), (1, 1), (0, 0, 0, 0)),
    ((2, 2), (2, 1), (2, 1), (1, 2), (1, 0, 0, 2)),
    ((3, 1), (1, 3), (1, 3), (2, 1), (-1, 2, 3, -1)),
    ((1, 1), (1, 1), (1, 1), (1, 1), (0, 0, 0, 0)),
    ((9, 1), (1, 1), (1, 1), (1, 1), (0, 0, 0, 0)),
]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize(
    ("type", "body"),
    [
        *((t, b) for t in ("float32", "int8", "int32") for b in ("ADD", "MUL", "MAXIMUM", "STABLEHLO_MINIMUM")),
        *(("bool", b) for b in ("LOGICAL_AND", "LOGICAL_OR")),
    ],
)
def test_reduce_window_equals_litert(litert: Callable[..., Any], type: str, body: str, window: Any) -> None:
    names = ("window_dimensions", "window_strides", "base_dilations", "window_dilations", "padding")
    options = StablehloReduceWindowOptions(body_subgraph_index=1, **{k: longs(*v) for k, v in zip(names, window)})
    model = model_of_chain(
        "STABLEHLO_REDUCE_WINDOW",
        [(type, (5, 6)), (type, ())],
        [(type, (1, 1))],
        options,
        [(body, (0, 1), None)],
        [type] * 2,
        type,
    )
    feeds = draw(type, 5, 6), np.array(1).astype(type)
    mine, theirs = run_op(model, *feeds)[0], litert(model, *feeds)[0]
    assert mine.shape == theirs.shape
    np.testing.assert_allclose(mine, theirs, rtol=1e-5)


@pytest.mark.parametrize(
    ("type", "function"),
    [
        *(
            (t, f)
            for t in ("float32", "float64", "int8", "int16", "int32", "int64", "uint8")
            for f in list(ReduceWindowFunction)[1:]
        ),
        # Of booleans, LiteRT's sums and products are no booleans.
        *(("bool", f) for f in list(ReduceWindowFunction)[3:]),
    ],
)
def test_reduce_window_of_litert(litert: Callable[..., Any], type: str, function: Any) -> None:
    operands: list[Any] = [Spec(type, (5, 6)), Spec(type, ()), longs(2, 3), longs(1, 2), longs(2, 1)]
    model = one_op_model("REDUCE_WINDOW", operands, [Spec(type, (1, 1))], ReduceWindowOptions(reduce_function=function))
    feeds = draw(type, 5, 6), np.array(1).astype(type)
    np.testing.assert_allclose(run_op(model, *feeds)[0], litert(model, *feeds)[0], rtol=1e-5)


def test_reduce_window_needs_strides_above_zero() -> None:
    operands: list[Any] = [Spec("int8", (5, 6)), Spec("int8", ()), longs(2, 3), longs(1, 0), longs(2, 1)]
    options = ReduceWindowOptions(reduce_function=ReduceWindowFunction.ADD)
    with pytest.raises(OpletError, match=r"window strides \[1, 0\] must be 2 numbers"):
        run_op(one_op_model("REDUCE_WINDOW", operands, [Spec("int8", (1, 1))], options), draw("int8", 5, 6), np.int8(0))


def scatter_model(type: str, body: Sequence[Any], index: str = "int32", result: str | None = None) -> bytes:
    options = StablehloScatterOptions(
        update_window_dims=longs(1),
        inserted_window_dims=longs(0),
        scatter_dims_to_operand_dims=longs(0, 1),
        index_vector_dim=1,
        update_computation_subgraph_index=1,
    )
    inputs = [(type, (4, 5)), (index, (3, 2)), (type, (3, 2))]
    return model_of_chain("STABLEHLO_SCATTER", inputs, [(type, (4, 5))], options, body, [type] * 2, result or type)


@pytest.mark.parametrize("body", ["", "STABLEHLO_ADD", "STABLEHLO_MULTIPLY", "STABLEHLO_MAXIMUM", "STABLEHLO_MINIMUM"])
@pytest.mark.parametrize("type", ["float32", "float16", "float64", "int8", "int64", "uint8", "uint32", "bool"])
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_scatter_equals_litert(litert: Callable[..., Any], type: str, body: str, index: str) -> None:
    model = scatter_model(type, [(body, (0, 1), None)] if body else [], index)
    # Two updates meet at one place, one lies half outside.
    feeds = draw(type, 4, 5), np.array([[1, 2], [1, 3], [3, 4]], index), draw(type, 3, 2) + draw(type, 3, 2)
    np.testing.assert_array_equal(run_op(model, *feeds)[0], litert(model, *feeds)[0])


@pytest.mark.parametrize(
    ("body", "function"),
    [("STABLEHLO_ADD", np.sum), ("STABLEHLO_MULTIPLY", np.prod), ("STABLEHLO_MAXIMUM", np.max), ("MINIMUM", np.min)],
)
@pytest.mark.parametrize("axes", [(1,), (0, 2), (2, 0), (), (0, 1, 2)])
@pytest.mark.parametrize("type", ["float32", "int32", "int8", "float16"])
def test_reduce(type: str, axes: Any, body: str, function: Any) -> None:
    options = StablehloReduceOptions(dimensions=longs(*axes), body_subgraph_index=1)
    shape = [n for i, n in enumerate((2, 3, 4)) if i not in axes]
    model = model_of_chain(
        "STABLEHLO_REDUCE", [(type, (2, 3, 4)), (type, ())], [(type, shape)], options, [(body, (0, 1), None)], [type] * 2, type
    )
    source = draw(type, 2, 3, 4) % 4 + 1
    initial = 5
    with np.errstate(over="ignore"):
        folded = function(source.astype(np.float32 if type == "float16" else type), tuple(axes), initial=initial)
        np.testing.assert_allclose(run_op(model, source, np.array(initial, type))[0], folded.astype(type), rtol=1e-3)


def sort_model(
    relation: Any, operands: Sequence[int], count: int = 2, type: str = "float32", op: str = "STABLEHLO_COMPARE"
) -> bytes:
    compare = StablehloCompareOptions(comparison_direction=relation) if op == "STABLEHLO_COMPARE" else None
    options = StablehloSortOptions(dimension=-1, is_stable=True, comparator_subgraph_index=1)
    tensors = [(type, (3, 7)), ("int32", (3, 7))][:count]
    values = [tensors[i // 2][0] for i in range(2 * count)]
    return model_of_chain("STABLEHLO_SORT", tensors, tensors, options, [(op, operands, compare)], values, "bool")


LT, GT = (StablehloComparisonDirection[f"STABLEHLO_COMPARISON_DIRECTION_{name}"] for name in ("LT", "GT"))


@pytest.mark.parametrize(("relation", "operands", "ascends"), [(LT, (0, 1), True), (GT, (0, 1), False), (LT, (1, 0), False)])
@pytest.mark.parametrize("type", ["float32", "int8", "uint8"])
def test_sort_takes_the_other_tensors_along(type: str, relation: Any, operands: Any, ascends: bool) -> None:
    keys, rest = draw(type, 3, 7) % 4, np.arange(21, dtype=np.int32).reshape(3, 7)
    sorted_keys, moved = run_op(sort_model(relation, operands, type=type), keys, rest)
    for row in range(3):
        order = sorted(range(7), key=lambda i: float(keys[row, i]) * (1 if ascends else -1))
        np.testing.assert_array_equal(sorted_keys[row], keys[row, order])
        np.testing.assert_array_equal(moved[row], rest[row, order])


def test_reduce_window_starts_with_the_first_of_several_initial_values(litert: Callable[..., Any]) -> None:
    operands: list[Any] = [Spec("int8", (5, 6)), Spec("int8", (2, 2)), longs(2, 3), longs(1, 1), longs(1, 1)]
    model = one_op_model("REDUCE_WINDOW", operands, [Spec("int8", (4, 4))], ReduceWindowOptions(reduce_function=1))
    feeds = draw("int8", 5, 6) % 5, np.array([[3, 9], [9, 9]], np.int8)
    np.testing.assert_array_equal(run_op(model, *feeds)[0], litert(model, *feeds)[0])
