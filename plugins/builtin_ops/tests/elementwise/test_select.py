"""SELECT and SELECT_V2: which shapes fit, any type, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oplet import Interpreter, ModelBuilder, TensorType
from oplet.errors import PrepareError
from oplet.schema.options import (
    ExpandDimsOptions,
    FillOptions,
    LessEqualOptions,
    RangeOptions,
    SelectOptions,
    SelectV2Options,
    ShapeOptions,
    StridedSliceOptions,
)
from oplet_testing import call_op, invoke
from oplet_testing.one_op import Spec, one_op_model, run_op


def run(op: str, condition: Any, x: Any, y: Any, declared: Any = (1, 2), constant: bool = False) -> Any:
    condition = np.asarray(condition)
    given = Spec("bool", condition.shape, data=condition) if constant else condition
    return call_op(op, [given, x, y], [Spec(x.dtype, declared)])[0]


@pytest.mark.parametrize("op", ["SELECT", "SELECT_V2"])
@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int16", "int64", "uint32", "bool", "complex64", "float64"])
def test_the_condition_chooses_values_of_any_type(op: str, dtype: str, constant: bool) -> None:
    x, y = np.array([[1, 0, 1]]).astype(dtype), np.array([[0, 7, 0]]).astype(dtype)
    result = run(op, [[True, False, True]], x, y, constant=constant)
    np.testing.assert_array_equal(result, [[x[0, 0], y[0, 1], x[0, 2]]])
    assert result.dtype == x.dtype


@pytest.mark.parametrize("op", ["SELECT", "SELECT_V2"])
@pytest.mark.parametrize("kept", ["x", "y", ""])
@pytest.mark.parametrize("size", [6, 1 << 19])
def test_values_are_chosen_in_the_place_of_either(op: str, kept: str, size: int) -> None:
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    tensors = {name: graph.add_tensor(name, "float32", [size]) for name in ("a", "b", "x", "y", "out")}
    condition = graph.add_tensor("condition", "bool", [size])
    graph.add_operator("NEG", [tensors["a"]], [tensors["x"]])
    graph.add_operator("NEG", [tensors["b"]], [tensors["y"]])
    chosen = [tensors["y"]] * 2 if not kept else [tensors["x"], tensors["y"]]
    graph.add_operator(op, [condition, *chosen], [tensors["out"]])
    graph.set_inputs(condition, tensors["a"], tensors["b"])
    graph.set_outputs(tensors["out"], *([tensors[kept]] if kept else []))
    values = [np.arange(size) % 3 == 1, np.arange(size, dtype=np.float32), np.arange(size, dtype=np.float32) * 10]
    out, *read = invoke(Interpreter(model_content=builder.to_bytes()), *values)
    np.testing.assert_array_equal(out, -np.where(values[0], values[1] if kept else values[2], values[2]))
    for each in read:
        np.testing.assert_array_equal(each, -values[1 if kept == "x" else 2])


def test_no_bit_of_what_is_not_a_number_is_lost() -> None:
    x = np.array([0x7FC01234, 0x7F812345], np.uint32).view(np.float32)
    result = run("SELECT_V2", [True, False], x, x[::-1].copy())
    assert result.view(np.uint32).tolist() == [0x7FC01234, 0x7FC01234]


def test_a_vector_chooses_slices_in_version_1_and_columns_in_version_2() -> None:
    x, y = np.arange(4.0).reshape(2, 2), np.full((2, 2), 9.0)
    assert run("SELECT", [True, False], x, y).tolist() == [[0, 1], [9, 9]]
    assert run("SELECT_V2", [True, False], x, y).tolist() == [[0, 9], [2, 9]]


@pytest.mark.parametrize("op", ["SELECT", "SELECT_V2"])
def test_a_scalar_condition_chooses_all(op: str) -> None:
    x, y = np.arange(4.0).reshape(2, 2), np.full((2, 2), 9.0)
    np.testing.assert_array_equal(run(op, True, x, y), x)
    np.testing.assert_array_equal(run(op, False, x, y), y)


def test_all_three_broadcast_in_version_2() -> None:
    condition, x, y = np.array([[True], [False]]), np.arange(3.0), np.full((4, 1, 1), -1.0)
    np.testing.assert_array_equal(run("SELECT_V2", condition, x, y), np.where(condition, x, y))
    assert run("SELECT_V2", np.zeros((0, 2), bool), np.ones(2), np.ones((1, 1))).shape == (0, 2)


@pytest.mark.parametrize("op", ["SELECT", "SELECT_V2"])
def test_single_values_keep_the_declared_rank(op: str) -> None:
    assert run(op, [True], np.array(3.0), np.array([[4.0]]), declared=(1, 1, 1)).tolist() == [[[3]]]


REFUSED: list[tuple[str, Any, Spec, Spec, str]] = [
    ("SELECT", Spec("bool", [2]), Spec("float32", [3, 2]), Spec("float32", [3, 2]), "must be a scalar"),
    ("SELECT", Spec("bool", [2]), Spec("float32", [2]), Spec("float32", [1]), "same shape"),
    ("SELECT", Spec("int8", [2]), Spec("float32", [2]), Spec("float32", [2]), "INT8"),
    ("SELECT_V2", Spec("bool", [2]), Spec("float32", [2]), Spec("int32", [2]), "same type"),
    ("SELECT_V2", Spec("bool", [2]), Spec(object, [2]), Spec(object, [2]), "STRING"),
    (
        "SELECT_V2",
        Spec("bool", [2]),
        Spec("float32", [3]),
        Spec("float32", [1]),
        r"\[2\], \[3\] and \[1\], are not broadcastable",
    ),
    ("SELECT_V2", Spec("bool", [1] * 9), Spec("float32", [2]), Spec("float32", [1]), "9 dimensions"),
]


@pytest.mark.parametrize(("op", "condition", "x", "y", "message"), REFUSED)
def test_refuses(op: str, condition: Spec, x: Spec, y: Spec, message: str) -> None:
    feeds = [np.zeros(spec.shape, spec.type) for spec in (condition, x, y)]
    with pytest.raises(PrepareError, match=message):
        run_op(one_op_model(op, [condition, x, y], [Spec(x.type, [7])]), *feeds)


@pytest.mark.parametrize("op", ["SELECT", "SELECT_V2"])
def test_a_condition_that_follows_from_the_length_is_another_one_after_a_resize(op: str) -> None:
    # A causal mask: which positions come before a row's own follows from the length alone.
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x = graph.add_tensor("x", "float32", [-1, -1])
    shape, ends = graph.add_tensor("shape", "int32", [2]), graph.add_tensor("end", "int32", [1], data=np.array([1], np.int32))
    axes = [graph.add_tensor("begin", "int32", [1], data=np.array([0], np.int32)), ends]
    length = graph.add_tensor("length", "int32", [])
    numbers = graph.add_tensor("numbers", "int32", [-1])
    zero, one = (graph.add_tensor(f"{i}", "int32", [], data=np.array(i, np.int32)) for i in (0, 1))
    column, mask = graph.add_tensor("column", "int32", [-1, 1]), graph.add_tensor("mask", "bool", [-1, -1])
    least, y = graph.add_tensor("least", "float32", [], data=np.array(-9, np.float32)), graph.add_tensor("y", "float32", [-1, -1])
    graph.add_operator("SHAPE", [x], [shape], ShapeOptions(out_type=TensorType.INT32))
    graph.add_operator("STRIDED_SLICE", [shape, *axes, ends], [length], StridedSliceOptions(shrink_axis_mask=1))
    graph.add_operator("RANGE", [zero, length, one], [numbers], RangeOptions())
    graph.add_operator("EXPAND_DIMS", [numbers, one], [column], ExpandDimsOptions())
    graph.add_operator("LESS_EQUAL", [numbers, column], [mask], LessEqualOptions())
    if op == "SELECT":  # takes no scalars
        table = graph.add_tensor("table", "float32", [-1, -1])
        graph.add_operator("FILL", [shape, least], [table], FillOptions())
        graph.add_operator("SELECT", [mask, x, table], [y], SelectOptions())
    else:
        graph.add_operator("SELECT_V2", [mask, x, least], [y], SelectV2Options())
    graph.set_inputs(x)
    graph.set_outputs(y)
    interpreter = Interpreter(model_content=builder.to_bytes())
    for size in (4, 7, 2, 4):
        interpreter.resize_tensor_input(x, [size, size])
        interpreter.allocate_tensors()
        value = np.arange(size * size, dtype=np.float32).reshape(size, size)
        interpreter.set_tensor(x, value)
        interpreter.invoke()
        np.testing.assert_array_equal(interpreter.get_tensor(y), np.where(np.tri(size, dtype=bool), value, -9))
