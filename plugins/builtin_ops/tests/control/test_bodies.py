"""Any pure body runs: STABLEHLO_REDUCE, _REDUCE_WINDOW, _SCATTER and _SORT of bodies that no kernel recognises."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from plugins.builtin_ops.tests.control.bodies import Step, model_with_body

from oplet import Interpreter, ModelBuilder
from oplet.errors import OpletError
from oplet.schema.enums import ActivationFunctionType, StablehloComparisonDirection, StablehloComparisonType
from oplet.schema.options import AddOptions, RandomOptions
from oplet.schema.stablehlo_options import (
    StablehloCompareOptions,
    StablehloReduceOptions,
    StablehloReduceWindowOptions,
    StablehloScatterOptions,
    StablehloSortOptions,
)
from oplet_testing import run_op

Array = np.ndarray[Any, Any]


def ints(*values: int) -> Array:
    return np.array(values, np.int64)


def draw(seed: int, type: str, *shape: int, high: int = 50) -> Array:
    return np.random.default_rng(seed).integers(0, high, shape).astype(type)


#: a - b, clamped at 40, in builtin operators; RESHAPE does not work value by value, so that the last body runs one by one.
SUBTRACT: list[Step] = [("SUB", (0, 1), "float32", None)]
BOUNDED: list[Step] = [("ADD", (0, 1), "float32", None), ("MINIMUM", (2, np.float32(40.0)), "float32", None)]
ONE_BY_ONE: list[Step] = [
    ("ADD", (0, 1), "float32", None),
    ("RESHAPE", (2, np.zeros(0, np.int32)), "float32", None),
    ("MINIMUM", (3, np.float32(40.0)), "float32", None),
]
FUSED: list[Step] = [("ADD", (0, 1), "float32", AddOptions(fused_activation_function=ActivationFunctionType.RELU6))]

BODIES = {
    "a - b": (SUBTRACT, lambda a, b: a - b),
    "min(a + b, 40)": (BOUNDED, lambda a, b: min(a + b, np.float32(40))),
    "the same one by one": (ONE_BY_ONE, lambda a, b: min(a + b, np.float32(40))),
    "relu6(a + b)": (FUSED, lambda a, b: min(max(a + b, np.float32(0)), np.float32(6))),
}


@pytest.mark.parametrize("name", BODIES)
def test_scatter_combines_updates_of_one_place_in_their_order(name: str) -> None:
    steps, function = BODIES[name]
    options = StablehloScatterOptions(
        update_window_dims=ints(), inserted_window_dims=ints(0), scatter_dims_to_operand_dims=ints(0), index_vector_dim=1,
        update_computation_subgraph_index=1,
    )  # fmt: skip
    data = model_with_body(
        "STABLEHLO_SCATTER", [("float32", (6,)), ("int32", (9, 1)), ("float32", (9,))], [("float32", (6,))], options,
        ["float32"] * 2, steps, [1 + len(steps)],
    )  # fmt: skip
    x, places, updates = draw(0, "float32", 6), np.array([0, 2, 2, 5, 2, 9, 0, -1, 2], np.int32), draw(1, "float32", 9)
    expected = x.copy()
    for place, update in zip(places, updates):
        if 0 <= place < 6:
            expected[place] = function(expected[place], update)
    np.testing.assert_array_equal(run_op(data, x, places[:, None], updates)[0], expected)


def test_scatter_of_two_tensors_exchanges_what_its_body_exchanges() -> None:
    options = StablehloScatterOptions(
        update_window_dims=ints(), inserted_window_dims=ints(0), scatter_dims_to_operand_dims=ints(0), index_vector_dim=1,
        update_computation_subgraph_index=1,
    )  # fmt: skip
    data = model_with_body(
        "STABLEHLO_SCATTER",
        [("float32", (4,)), ("float32", (4,)), ("int32", (3, 1)), ("float32", (3,)), ("float32", (3,))],
        [("float32", (4,))] * 2,
        options,
        ["float32"] * 4,
        [("ADD", (0, 3), "float32", None), ("SUB", (1, 2), "float32", None)],
        [4, 5],
    )
    a, b, p, q = (draw(seed, "float32", n) for seed, n in ((0, 4), (1, 4), (2, 3), (3, 3)))
    first, second = run_op(data, a, b, np.array([[1], [3], [1]], np.int32), p, q)
    expected = a.copy(), b.copy()
    for place, one, other in zip((1, 3, 1), p, q):
        expected[0][place] += other
        expected[1][place] -= one
    np.testing.assert_array_equal(first, expected[0])
    np.testing.assert_array_equal(second, expected[1])


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("axes", [(1,), (0, 2), (), (0, 1, 2)])
def test_reduce_folds_from_the_initial_value_on(name: str, axes: tuple[int, ...]) -> None:
    steps, function = BODIES[name]
    shape = (2, 3, 4)
    kept = [dim for axis, dim in enumerate(shape) if axis not in axes]
    options = StablehloReduceOptions(dimensions=ints(*axes), body_subgraph_index=1)
    data = model_with_body(
        "STABLEHLO_REDUCE", [("float32", shape), ("float32", ())], [("float32", kept)], options, ["float32"] * 2, steps,
        [1 + len(steps)],
    )  # fmt: skip
    x = draw(0, "float32", *shape)
    order = [axis for axis in range(3) if axis not in axes] + list(axes)
    rows = x.transpose(order).reshape(int(np.prod(kept, dtype=int)), -1)
    expected = [functools.reduce(function, row, np.float32(5)) for row in rows]
    np.testing.assert_array_equal(run_op(data, x, np.float32(5))[0], np.reshape(expected, kept))


#: The largest value and its place: what JAX and PyTorch write for argmax.
ARGMAX: list[Step] = [
    ("GREATER_EQUAL", (0, 2), "bool", None),
    ("SELECT_V2", (4, 0, 2), "float32", None),
    ("EQUAL", (0, 2), "bool", None),
    ("MINIMUM", (1, 3), "int32", None),
    ("SELECT_V2", (4, 1, 3), "int32", None),
    ("SELECT_V2", (6, 7, 8), "int32", None),
]


@pytest.mark.parametrize("shape", [(3, 5), (2, 700), (1, 5000), (0, 4), (3, 0)])
def test_reduce_of_two_tensors_finds_the_largest_value_and_its_first_place(shape: tuple[int, int]) -> None:
    options = StablehloReduceOptions(dimensions=ints(1), body_subgraph_index=1)
    data = model_with_body(
        "STABLEHLO_REDUCE",
        [("float32", shape), ("int32", shape), ("float32", ()), ("int32", ())],
        [("float32", shape[:1]), ("int32", shape[:1])],
        options,
        ["float32", "int32"] * 2,
        ARGMAX,
        [5, 9],
    )
    x, places = draw(0, "float32", *shape), np.broadcast_to(np.arange(shape[1], dtype=np.int32), shape).copy()
    largest, place = run_op(data, x, places, np.float32(-np.inf), np.int32(0))
    if shape[1]:
        np.testing.assert_array_equal(largest, x.max(1))
        np.testing.assert_array_equal(place, x.argmax(1))
    else:
        assert np.isneginf(largest).all()
        assert not place.any()


@pytest.mark.parametrize("name", BODIES)
def test_reduce_window_folds_each_window_tap_by_tap(name: str) -> None:
    steps, function = BODIES[name]
    options = StablehloReduceWindowOptions(
        window_dimensions=ints(2, 3), window_strides=ints(1, 2), padding=ints(1, 0, 0, 1), body_subgraph_index=1
    )
    data = model_with_body(
        "STABLEHLO_REDUCE_WINDOW", [("float32", (4, 6)), ("float32", ())], [("float32", (4, 3))], options, ["float32"] * 2, steps,
        [1 + len(steps)],
    )  # fmt: skip
    x = draw(0, "float32", 4, 6)
    padded = np.pad(x, ((1, 0), (0, 1)), constant_values=3)
    expected = [
        [functools.reduce(function, padded[i : i + 2, j : j + 3].ravel(), np.float32(3)) for j in range(0, 5, 2)]
        for i in range(4)
    ]
    np.testing.assert_array_equal(run_op(data, x, np.float32(3))[0], expected)


def test_reduce_window_of_a_batch_of_0_that_it_pads_is_refused_when_it_runs_as_in_litert() -> None:
    rival = pytest.importorskip("ai_edge_litert.interpreter")
    options = StablehloReduceWindowOptions(
        window_dimensions=ints(1, 2), window_strides=ints(1, 1), base_dilations=ints(1, 1), window_dilations=ints(1, 1),
        padding=ints(0, 0, 0, 1), body_subgraph_index=1,
    )  # fmt: skip
    data = model_with_body(
        "STABLEHLO_REDUCE_WINDOW", [("float32", (0, 6)), ("float32", ())], [("float32", (0, 6))], options, ["float32"] * 2,
        [("ADD", (0, 1), "float32", None)], [2],
    )  # fmt: skip
    for make in (Interpreter, rival.Interpreter):
        interpreter = make(model_content=data)
        interpreter.allocate_tensors()
        with pytest.raises(RuntimeError, match="empty tensor"):
            interpreter.invoke()


def test_bitwise_bodies_combine_bits() -> None:
    options = StablehloReduceOptions(dimensions=ints(0), body_subgraph_index=1)
    for op, ufunc, initial in (("STABLEHLO_AND", np.bitwise_and, -1), ("STABLEHLO_OR", np.bitwise_or, 0)):
        data = model_with_body(
            "STABLEHLO_REDUCE", [("int32", (3, 4)), ("int32", ())], [("int32", (4,))], options, ["int32"] * 2,
            [(op, (0, 1), "int32", None)], [2],
        )  # fmt: skip
        x = draw(0, "int32", 3, 4)
        np.testing.assert_array_equal(run_op(data, x, np.int32(initial))[0], ufunc.reduce(x, 0))


LT = StablehloComparisonDirection.STABLEHLO_COMPARISON_DIRECTION_LT
TOTAL = StablehloComparisonType.STABLEHLO_COMPARISON_TYPE_FLOAT_TOTAL_ORDER

#: By the first tensor upwards, of equals by the second one downwards.
BY_TWO: list[Step] = [
    ("LESS", (0, 1), "bool", None),
    ("EQUAL", (0, 1), "bool", None),
    ("GREATER", (2, 3), "bool", None),
    ("LOGICAL_AND", (5, 6), "bool", None),
    ("LOGICAL_OR", (4, 7), "bool", None),
]
#: By absolute values, with a step that does not work value by value.
BY_SIZE: list[Step] = [
    ("ABS", (0,), "float32", None),
    ("ABS", (1,), "float32", None),
    ("RESHAPE", (4, np.zeros(0, np.int32)), "float32", None),
    ("LESS", (6, 5), "bool", None),
]


def sort_model(steps: Sequence[Step], shape: Sequence[int], axis: int, result: int) -> bytes:
    options = StablehloSortOptions(dimension=axis, is_stable=True, comparator_subgraph_index=1)
    tensors = [("float32", shape), ("int32", shape)]
    return model_with_body("STABLEHLO_SORT", tensors, tensors, options, ["float32", "float32", "int32", "int32"], steps, [result])


@pytest.mark.parametrize(
    ("shape", "axis"), [((3, 7), 1), ((6, 2, 3), 0), ((1, 1), 1), ((2, 64), 1), ((2, 1000), -1), ((0, 3), 1)]
)
def test_sort_by_any_comparator_is_a_stable_sort(shape: tuple[int, ...], axis: int) -> None:
    keys = draw(0, "float32", *shape, high=6) - 3
    rest = draw(1, "int32", *shape, high=4)
    for steps, result, key in (
        (BY_TWO, 8, lambda pair: (pair[0], -pair[1])),
        (BY_SIZE, 7, lambda pair: abs(pair[0])),
    ):
        if steps is BY_SIZE and keys.size > 500:
            continue  # one comparison at a time
        found = run_op(sort_model(steps, shape, axis, result), keys, rest)
        turned = [np.moveaxis(array, axis, -1) for array in (keys, rest, *found)]
        for place in np.ndindex(turned[0].shape[:-1]):
            pairs = sorted(zip(turned[0][place].tolist(), turned[1][place].tolist()), key=key)
            assert list(zip(turned[2][place].tolist(), turned[3][place].tolist())) == pairs


def test_sort_in_the_total_order_tells_zeros_apart() -> None:
    options = StablehloSortOptions(dimension=0, is_stable=True, comparator_subgraph_index=1)
    compare = StablehloCompareOptions(comparison_direction=LT, compare_type=TOTAL)
    data = model_with_body(
        "STABLEHLO_SORT", [("float32", (4,))], [("float32", (4,))], options, ["float32"] * 2,
        [("STABLEHLO_COMPARE", (0, 1), "bool", compare)], [2],
    )  # fmt: skip
    found = run_op(data, np.array([0.0, -0.0, 1.0, -1.0], np.float32))[0]
    assert np.signbit(found).tolist() == [True, True, False, False]


def test_two_nodes_share_a_body() -> None:
    builder = ModelBuilder()
    main, body = builder.add_subgraph("main"), builder.add_subgraph("body")
    x, start = main.add_tensor("x", "float32", (3, 4)), main.add_tensor("start", "float32", ())
    rows, whole = main.add_tensor("rows", "float32", (3,)), main.add_tensor("whole", "float32", ())
    main.set_inputs(x, start)
    main.set_outputs(rows, whole)
    main.add_operator("STABLEHLO_REDUCE", [x, start], [rows], StablehloReduceOptions(dimensions=ints(1), body_subgraph_index=1))
    main.add_operator(
        "STABLEHLO_REDUCE", [rows, start], [whole], StablehloReduceOptions(dimensions=ints(0), body_subgraph_index=1)
    )
    a, b, c = (body.add_tensor(name, "float32", ()) for name in "abc")
    body.set_inputs(a, b)
    body.set_outputs(c)
    body.add_operator("SUB", [a, b], [c])
    values = draw(0, "float32", 3, 4)
    for _ in range(2):
        found = run_op(builder.to_bytes(), values, np.float32(7))
        np.testing.assert_array_equal(found[0], 7 - values.sum(1))
        np.testing.assert_array_equal(found[1], 7 - found[0].sum())


def test_a_body_that_does_more_than_compute_is_refused() -> None:
    options = StablehloReduceOptions(dimensions=ints(0), body_subgraph_index=1)
    steps: list[Step] = [("RANDOM_UNIFORM", (np.zeros(0, np.int32),), "float32", RandomOptions(seed=1))]
    data = model_with_body(
        "STABLEHLO_REDUCE", [("float32", (3,)), ("float32", ())], [("float32", ())], options, ["float32"] * 2, steps, [2]
    )
    with pytest.raises(OpletError, match="holds RANDOM_UNIFORM, which does more than compute a value"):
        run_op(data, draw(0, "float32", 3), np.float32(0))


def test_a_comparator_must_give_a_boolean() -> None:
    with pytest.raises(OpletError, match="must give one boolean"):
        run_op(sort_model([("SUB", (0, 1), "float32", None)], (3, 2), 0, 4), draw(0, "float32", 3, 2), draw(0, "int32", 3, 2))


def test_a_body_of_other_types_is_refused() -> None:
    options = StablehloReduceOptions(dimensions=ints(0), body_subgraph_index=1)
    data = model_with_body(
        "STABLEHLO_REDUCE", [("float32", (3,)), ("float32", ())], [("float32", ())], options, ["int32"] * 2,
        [("ADD", (0, 1), "int32", None)], [2],
    )  # fmt: skip
    with pytest.raises(OpletError, match="takes INT32 as value 0 and must take or give FLOAT32"):
        run_op(data, draw(0, "float32", 3), np.float32(0))
