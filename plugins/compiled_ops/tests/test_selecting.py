"""Compiled comparisons, integer arithmetic, logic, GATHER, SLICE, STRIDED_SLICE, SELECT_V2 and reductions answer as the numpy kernels do, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plugins.compiled_ops.tests.compiled import is_compiled
from tests.budgets import examples

from oplet import Interpreter
from oplet.errors import InvokeError
from oplet.schema.enums import ActivationFunctionType
from oplet.schema.options import (
    AddOptions,
    GatherOptions,
    MulOptions,
    ReducerOptions,
    SliceOptions,
    StridedSliceOptions,
    SubOptions,
)
from oplet_testing import Spec, invoke, one_op_model

SLOWLY = settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
COMPARISONS = ["LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL", "EQUAL", "NOT_EQUAL"]
ARITHMETIC = {"ADD": AddOptions, "SUB": SubOptions, "MUL": MulOptions}
SIGNED = ["int8", "int16", "int32", "int64"]
SHORT = ["int8", "int16", "int32", "uint8", "uint16", "uint32"]
#: Operations of integers, and divisions, with their types.
OF_INTEGERS = {
    "MAXIMUM": [*SIGNED, "uint8"],
    "MINIMUM": [*SIGNED, "uint8"],
    "BITWISE_XOR": SHORT,
    "RIGHT_SHIFT": SHORT,
}
DIVISIONS = {"FLOOR_DIV": ["float32", "int8", "int16", "int32"], "FLOOR_MOD": ["float32", *SIGNED]}
NONE = ActivationFunctionType.NONE
REDUCTIONS = {"REDUCE_MAX": "fi", "REDUCE_MIN": "fi", "REDUCE_PROD": "i", "REDUCE_ANY": "b", "REDUCE_ALL": "b"}

Case = tuple[bytes, list[Any]]


def numbers(random: np.random.Generator, kind: str, shape: tuple[int, ...]) -> Any:
    """Few different values, so that many are equal, and the extreme ones."""
    if kind == "bool":
        return random.random(shape) < 0.5
    if kind == "float32":
        return random.choice(np.array([-1.5, 0, 0.25, 3, np.nan, np.inf, -np.inf], np.float32), shape)
    info = np.iinfo(kind)
    return random.choice(np.array([info.min, info.max, 0, 1, 2, 3, 7, 100], kind), shape)


@st.composite
def pairs(draw: st.DrawFn) -> Case:
    """A comparison, an operation of integers, a division, or a logical one, whose operands may be broadcast."""
    op = draw(st.sampled_from([*COMPARISONS, *ARITHMETIC, *OF_INTEGERS, *DIVISIONS, "LOGICAL_AND", "LOGICAL_OR"]))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kinds = {**OF_INTEGERS, **DIVISIONS}.get(op, [*SIGNED, "uint8", "float32"] if op in COMPARISONS else ["int32", "int64"])
    kind = "bool" if op.startswith("LOGICAL") else draw(st.sampled_from(kinds))
    shape = tuple(draw(st.integers(1, 5)) for _ in range(draw(st.integers(0, 3))))
    small = draw(st.sampled_from([shape, (), shape[-1:], (*shape[:-1], 1) if shape else ()]))
    column = (*shape[:-1], 1) if shape else ()
    shapes = draw(st.sampled_from([(shape, small), (small, shape), (column, shape[-1:])]))
    values = [numbers(random, kind, each) for each in shapes]
    if op in DIVISIONS:
        values[1] = np.where(np.asarray(values[1]) == 0, np.array(-1, kind), values[1]).astype(kind)
    clamp = draw(
        st.sampled_from(
            [NONE, NONE, ActivationFunctionType.RELU, ActivationFunctionType.RELU_N1_TO_1, ActivationFunctionType.RELU6]
        )
    )
    options = ARITHMETIC[op](fused_activation_function=clamp) if op in ARITHMETIC else None
    result = Spec("bool" if op in COMPARISONS else kind, np.broadcast_shapes(*shapes))
    constant = draw(st.booleans())
    inputs = [Spec(kind, shapes[0]), np.asarray(values[1]) if constant else Spec(kind, shapes[1])]
    return one_op_model(op, inputs, [result], options), values[: 1 if constant else 2]


@st.composite
def scaled_comparisons(draw: st.DrawFn) -> Case:
    """A comparison of numbers of two quantizations."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["int8", "uint8"]))
    scales = draw(st.tuples(st.sampled_from([0.02, 0.5]), st.sampled_from([0.02, 0.03])))
    shapes = draw(st.sampled_from([((40,), (40,)), ((3, 5), (5,)), ((), (7,)), ((3, 1), (1, 4))]))
    info = np.iinfo(kind)
    values = [random.integers(info.min, info.max + 1, shape).astype(kind) for shape in shapes]
    zeros = draw(st.tuples(st.integers(info.min, info.max), st.integers(info.min, info.max)))
    inputs = [Spec(kind, shape, [scale], [zero]) for shape, scale, zero in zip(shapes, scales, zeros)]
    return one_op_model(draw(st.sampled_from(COMPARISONS)), inputs, [Spec("bool", np.broadcast_shapes(*shapes))]), values


@st.composite
def selections(draw: st.DrawFn) -> Case:
    """A GATHER or a SLICE."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["float32", "int8", "int16", "int64", "bool"]))
    shape = tuple(draw(st.integers(1, 6)) for _ in range(draw(st.integers(1, 4))))
    source = random.integers(0, 2 if kind == "bool" else 100, shape).astype(kind)
    index = draw(st.sampled_from(["int32", "int64"]))
    if draw(st.booleans()):
        sizes = [draw(st.integers(1, length)) for length in shape]
        begin = np.array([draw(st.integers(0, length - size)) for length, size in zip(shape, sizes)], index)
        inputs = [Spec(kind, shape), Spec(index, begin.shape), np.array(sizes, index)]
        return one_op_model("SLICE", inputs, [Spec(kind, sizes)], SliceOptions()), [source, begin]
    axis = draw(st.integers(0, len(shape) - 1))
    batch = draw(st.integers(0, axis))
    places = (*shape[:batch], *(draw(st.integers(1, 4)) for _ in range(draw(st.integers(0, 2)))))
    positions = random.integers(0, shape[axis], places).astype(index)
    output = Spec(kind, (*shape[:axis], *places[batch:], *shape[axis + 1 :]))
    return (
        one_op_model("GATHER", [Spec(kind, shape), Spec(index, places)], [output], GatherOptions(axis=axis, batch_dims=batch)),
        [source, positions],
    )


@st.composite
def reductions(draw: st.DrawFn) -> Case:
    """A reduction over any axes."""
    op = draw(st.sampled_from(list(REDUCTIONS)))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kinds = {
        "f": ["float32"],
        "i": ["int32", "int64"],
        "b": ["bool"],
        "fi": ["float32", "int8", "uint8", "int16", "int32", "int64"],
    }
    kind = draw(st.sampled_from(kinds[REDUCTIONS[op]]))
    shape = tuple(draw(st.integers(1, 6)) for _ in range(draw(st.integers(1, 4))))
    axes = draw(st.lists(st.integers(-len(shape), len(shape) - 1), max_size=3))
    keeps, version = draw(st.booleans()), 2 if op in ("REDUCE_MAX", "REDUCE_MIN") else 1
    taken = {axis % len(shape) for axis in axes}
    output = [1 if axis in taken else length for axis, length in enumerate(shape) if keeps or axis not in taken]
    inputs = [
        Spec(kind, shape, [0.5], [0]) if kind in ("int8", "uint8", "int16") else Spec(kind, shape),
        np.array(axes, np.int32),
    ]
    result = Spec(kind, output, [0.5], [0]) if kind in ("int8", "uint8", "int16") else Spec(kind, output)
    return one_op_model(op, inputs, [result], ReducerOptions(keep_dims=keeps), version=version), [numbers(random, kind, shape)]


@st.composite
def choices(draw: st.DrawFn) -> Case:
    """A SELECT, or a SELECT_V2 whose inputs may repeat along any axes."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["float32", "int8", "int16", "int32", "int64", "bool"]))
    shape = tuple(draw(st.integers(1, 6)) for _ in range(draw(st.integers(0, 5))))
    if draw(st.booleans()):
        condition = numbers(random, "bool", draw(st.sampled_from([shape, (), shape[:1]])))
        x, y = (numbers(random, kind, shape) for _ in range(2))
        inputs = [Spec("bool", np.shape(condition)), Spec(kind, shape), Spec(kind, shape)]
        return one_op_model("SELECT", inputs, [Spec(kind, shape)]), [condition, x, y]
    kept = [tuple(dim if draw(st.booleans()) else 1 for dim in shape)[draw(st.integers(0, len(shape))) :] for _ in range(3)]
    kept[draw(st.integers(0, 2))] = shape
    condition, x, y = (numbers(random, kind, some) for kind, some in zip(("bool", kind, kind), kept))
    inputs = [Spec("bool", kept[0]), Spec(kind, kept[1]), Spec(kind, kept[2])]
    return one_op_model("SELECT_V2", inputs, [Spec(kind, shape)]), [condition, x, y]


@st.composite
def taken_positions(draw: st.DrawFn) -> Case:
    """A STRIDED_SLICE of single positions that are known only when it runs, of other axes whole, and of new ones."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["float32", "int8", "int64", "bool"]))
    shape = tuple(draw(st.integers(1, 5)) for _ in range(draw(st.integers(1, 4))))
    begins, steps, shrink, opened, new = [], [], 0, 0, 0
    for axis in range(draw(st.integers(1, len(shape)))):
        if draw(st.integers(0, 5)) == 0:
            new |= 1 << len(begins)
            begins.append(0)
            steps.append(1)
        entry = 1 << len(begins)
        if draw(st.booleans()):
            shrink |= entry
            begins.append(draw(st.integers(-shape[axis] - 1, shape[axis] - 1)))
            steps.append(1)
        else:
            opened |= entry
            begins.append(draw(st.integers(-9, 9)))
            steps.append(draw(st.sampled_from([1, 1, 2, -1, -2])))
    place = Spec("int32", [len(begins)])
    masks = {"begin_mask": opened, "end_mask": opened | shrink, "shrink_axis_mask": shrink, "new_axis_mask": new}
    inputs: list[Any] = [Spec(kind, shape), place, place, np.array(steps, np.int32)]
    model = one_op_model("STRIDED_SLICE", inputs, [Spec(kind, [1])], StridedSliceOptions(**masks))
    begin = np.array(begins, np.int32)
    return model, [numbers(random, kind, shape), begin, begin + 1]


def same_bits(case: Case, threads: int = 1) -> None:
    model, values = case
    wanted, found = (
        [invoke(runner, *values)[0] for _ in range(2)]
        for runner in (
            Interpreter(model_content=model, plugins=["builtin_ops"]),
            Interpreter(model_content=model, num_threads=threads),
        )
    )
    for one, other in zip(found, wanted, strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        np.testing.assert_array_equal(one, other)


@SLOWLY
@given(pairs())
def test_pairs_without_scales_are_numpys(case: Case) -> None:
    same_bits(case)


@SLOWLY
@given(scaled_comparisons())
def test_quantized_numbers_compare_as_numpys(case: Case) -> None:
    same_bits(case)


@SLOWLY
@given(selections())
def test_selected_slices_are_numpys(case: Case) -> None:
    same_bits(case)


@SLOWLY
@given(choices())
def test_numbers_that_a_condition_selects_are_numpys(case: Case) -> None:
    same_bits(case)


@SLOWLY
@given(taken_positions())
def test_positions_that_a_strided_slice_takes_are_numpys_and_litert_s(case: Case) -> None:
    same_bits(case)
    model, values = case
    litert = pytest.importorskip("ai_edge_litert.interpreter").Interpreter(model_content=model)
    litert.allocate_tensors()
    for details, value in zip(litert.get_input_details(), values, strict=True):
        litert.set_tensor(details["index"], value)
    litert.invoke()
    [details] = litert.get_output_details()
    np.testing.assert_array_equal(invoke(Interpreter(model_content=model), *values)[0], litert.get_tensor(details["index"]))


@SLOWLY
@given(reductions())
def test_reductions_are_numpys(case: Case) -> None:
    same_bits(case)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("op", REDUCTIONS)
def test_large_reductions_are_numpys_on_several_threads(op: str, threads: int) -> None:
    kind = {"f": "float32", "fi": "float32", "i": "int32", "b": "bool"}[REDUCTIONS[op]]
    x = numbers(np.random.default_rng(0), kind, (64, 30, 300))
    model = one_op_model(op, [Spec(kind, x.shape), np.array([1], np.int32)], [Spec(kind, (64, 300))], ReducerOptions())
    assert is_compiled(model)
    same_bits((model, [x]), threads)


@pytest.mark.parametrize("kind", ["int32", "int64", "float32"])
def test_every_one_of_these_operators_has_a_compiled_kernel(kind: str) -> None:
    vector, one = Spec(kind, [4]), Spec(kind, [])
    for op in COMPARISONS:
        assert is_compiled(one_op_model(op, [vector, one], [Spec("bool", [4])]))
    for op in ARITHMETIC:
        assert is_compiled(one_op_model(op, [one, vector], [vector], ARITHMETIC[op]()))
    assert is_compiled(one_op_model("GATHER", [vector, Spec("int32", [2])], [Spec(kind, [2])], GatherOptions()))
    size = np.array([2], np.int32)
    assert is_compiled(one_op_model("SLICE", [vector, Spec("int32", [1]), size], [Spec(kind, [2])], SliceOptions()))


@pytest.mark.parametrize("op", ARITHMETIC)
def test_integers_with_an_activation_are_compiled(op: str) -> None:
    options = ARITHMETIC[op](fused_activation_function=ActivationFunctionType.RELU)
    model = one_op_model(op, [Spec("int32", [3]), Spec("int32", [3])], [Spec("int32", [3])], options)
    assert is_compiled(model)
    same_bits((model, [np.array([1, -5, 3], np.int32), np.array([-2, 1, 1], np.int32)]))


@pytest.mark.parametrize("op", DIVISIONS)
@pytest.mark.parametrize("kind", ["int8", "int32", "float32"])
def test_a_divisor_of_zero_is_refused_with_numpys_message(op: str, kind: str) -> None:
    if (op, kind) == ("FLOOR_MOD", "float32"):
        pytest.skip("a remainder of floats is NaN then")
    model = one_op_model(op, [Spec(kind, [3]), Spec(kind, [3])], [Spec(kind, [3])])
    assert is_compiled(model)
    x, messages = np.array([7, -7, 3], kind), []
    for plugins in (["builtin_ops"], ["builtin_ops", "compiled_ops"]):
        interpreter = Interpreter(model_content=model, plugins=plugins)
        for _ in range(2):
            invoke(interpreter, x, np.array([2, -1, 3], kind))
            with pytest.raises(InvokeError) as caught:
                invoke(interpreter, x, np.array([2, 0, 3], kind))
            messages.append(str(caught.value).partition(" Node number")[0])
    assert len(set(messages)) == 1, messages
    assert "Division by 0" in messages[0]


@pytest.mark.parametrize("kind", ["int8", "int16", "int32"])
def test_the_lowest_integer_divided_by_minus_one_wraps_around(kind: str) -> None:
    x = np.array([np.iinfo(kind).min] * 5, kind)
    for op in DIVISIONS:
        model = one_op_model(op, [Spec(kind, [5]), Spec(kind, [5])], [Spec(kind, [5])])
        same_bits((model, [x, np.full(5, -1, kind)]))


@pytest.mark.parametrize("kind", ["float32", "int32"])
@pytest.mark.parametrize("count", [2, 5])
def test_a_sum_of_several_tensors_is_numpys(kind: str, count: int) -> None:
    random = np.random.default_rng(count)
    model = one_op_model("ADD_N", [Spec(kind, [3, 5])] * count, [Spec(kind, [3, 5])])
    assert is_compiled(model)
    same_bits((model, [(random.standard_normal((3, 5)) * 2.0**29).astype(kind) for _ in range(count)]))


@pytest.mark.parametrize(
    ("first", "message"), [(-1, "position -1 is outside"), (4, "position 4 is outside"), (2**31 - 1, "outside")]
)
def test_a_position_out_of_bounds_is_refused_and_reads_nothing(first: int, message: str) -> None:
    model = one_op_model("GATHER", [Spec("float32", [4]), Spec("int32", [2])], [Spec("float32", [2])], GatherOptions())
    interpreter = Interpreter(model_content=model)
    x = np.arange(4, dtype=np.float32)
    for _ in range(3):
        assert invoke(interpreter, x, np.array([3, 0], np.int32))[0].tolist() == [3, 0]
        with pytest.raises(InvokeError, match=message):
            invoke(interpreter, x, np.array([0, first], np.int32))


@pytest.mark.parametrize("begin", [[-1, 0], [3, 0], [0, 2], [2**31 - 1, 2**31 - 1]])
def test_a_slice_that_leaves_its_source_is_refused_with_numpys_message(begin: list[int]) -> None:
    inputs = [Spec("float32", [4, 3]), Spec("int32", [2]), np.array([2, 2], np.int32)]
    model = one_op_model("SLICE", inputs, [Spec("float32", [2, 2])], SliceOptions())
    x, places = np.arange(12, dtype=np.float32).reshape(4, 3), np.array(begin, np.int32)
    messages = []
    for plugins in (["builtin_ops"], ["builtin_ops", "compiled_ops"]):
        interpreter = Interpreter(model_content=model, plugins=plugins)
        for _ in range(2):
            assert invoke(interpreter, x, np.array([2, 1], np.int32))[0].tolist() == [[7, 8], [10, 11]]
            with pytest.raises(InvokeError) as caught:
                invoke(interpreter, x, places)
            messages.append(str(caught.value).partition(" Node number")[0])
    assert len(set(messages)) == 1, messages


@pytest.mark.parametrize("position", [4, 100, 2**31 - 1])
def test_a_position_that_a_strided_slice_does_not_have_is_refused_with_numpys_message(position: int) -> None:
    inputs = [Spec("float32", [2, 4]), Spec("int32", [2]), Spec("int32", [2]), np.array([1, 1], np.int32)]
    options = StridedSliceOptions(begin_mask=1, end_mask=1, shrink_axis_mask=2)
    model = one_op_model("STRIDED_SLICE", inputs, [Spec("float32", [2])], options)
    assert is_compiled(model)
    x, messages = np.arange(8, dtype=np.float32).reshape(2, 4), []
    for plugins in (["builtin_ops"], ["builtin_ops", "compiled_ops"]):
        interpreter = Interpreter(model_content=model, plugins=plugins)
        for _ in range(2):
            assert invoke(interpreter, x, np.array([0, 3], np.int32), np.array([0, 4], np.int32))[0].tolist() == [3, 7]
            with pytest.raises(InvokeError) as caught:
                invoke(interpreter, x, np.array([0, position], np.int32), np.array([0, 0], np.int32))
            messages.append(str(caught.value).partition(" Node number")[0])
    assert len(set(messages)) == 1, messages


@pytest.mark.parametrize("kind", ["float32", "int8"])
def test_a_select_of_a_mask_is_compiled(kind: str) -> None:
    inputs = [Spec("bool", [1, 1, 4, 4]), Spec(kind, []), Spec(kind, [1, 2, 4, 4])]
    assert is_compiled(one_op_model("SELECT_V2", inputs, [Spec(kind, [1, 2, 4, 4])]))


def test_integers_that_wrap_around_and_nan_give_what_litert_gives() -> None:
    litert = pytest.importorskip("ai_edge_litert.interpreter").Interpreter
    random = np.random.default_rng(3)
    for op in (*ARITHMETIC, *COMPARISONS):
        for kind in ("int32", "int64") if op in ARITHMETIC else ("int32", "int64", "float32"):
            x, y = numbers(random, kind, (50,)), numbers(random, kind, (50,))
            options = ARITHMETIC[op]() if op in ARITHMETIC else None
            result = Spec("bool" if op in COMPARISONS else kind, [50])
            model = one_op_model(op, [Spec(kind, [50]), Spec(kind, [50])], [result], options)
            [found] = invoke(Interpreter(model_content=model), x, y)
            runner = litert(model_content=model)
            runner.allocate_tensors()
            for details, value in zip(runner.get_input_details(), (x, y), strict=True):
                runner.set_tensor(details["index"], value)
            runner.invoke()
            np.testing.assert_array_equal(found, runner.get_tensor(runner.get_output_details()[0]["index"]))
