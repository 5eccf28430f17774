"""ADD, SUB and MUL: broadcasting, fused activations, fixed point, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oplet.errors import ModelError, PrepareError
from oplet.schema.enums import ActivationFunctionType as Activation
from oplet.schema.options import AddOptions, MulOptions, SubOptions
from oplet_testing.one_op import Spec, one_op_model, run_op

OPS: dict[str, tuple[np.ufunc, Any]] = {
    "ADD": (np.add, AddOptions),
    "SUB": (np.subtract, SubOptions),
    "MUL": (np.multiply, MulOptions),
}
SHAPES = [
    ((2, 3), (2, 3)),
    ((2, 3, 4), (4,)),
    ((1,), (3, 2)),
    ((), (3,)),
    ((2, 1, 3, 1, 2, 2), (1, 4, 1, 5, 2, 2)),
    ((0, 3), (1, 3)),
]


def values(rng: np.random.Generator, dtype: Any, shape: tuple[int, ...]) -> Any:
    dtype = np.dtype(dtype)
    if dtype.kind in "fc":
        return (rng.standard_normal(shape) * 8).astype(dtype)
    return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype=dtype, endpoint=True)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(("a_shape", "b_shape"), SHAPES)
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64])
def test_plain_numbers_follow_numpy_and_broadcast(op: str, dtype: Any, a_shape: Any, b_shape: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = values(rng, dtype, a_shape), values(rng, dtype, b_shape)
    ufunc, options = OPS[op]
    with np.errstate(over="ignore"):
        expected = ufunc(a, b)
    model = one_op_model(op, [Spec(dtype, a_shape), Spec(dtype, b_shape)], [Spec(dtype, expected.shape)], options())
    np.testing.assert_array_equal(run_op(model, a, b)[0], expected)


@pytest.mark.parametrize(("activation", "low", "high"), [("RELU", 0, np.inf), ("RELU6", 0, 6), ("RELU_N1_TO_1", -1, 1)])
def test_a_fused_activation_clamps_the_sum(activation: str, low: float, high: float) -> None:
    a = np.array([-9, -0.5, 0.25, 3, 20], np.float32)
    options = AddOptions(fused_activation_function=Activation[activation])
    model = one_op_model("ADD", [Spec("float32", [5]), np.zeros(5, np.float32)], [Spec("float32", [5])], options)
    np.testing.assert_array_equal(run_op(model, a)[0], np.clip(a, low, high))


@pytest.mark.parametrize("constant", [(1, 1, 8), (8,), (1, 6, 8)])
def test_a_small_constant_that_is_tiled_gives_the_same_sums(constant: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    a, b = values(rng, "float32", (2, 40, 6, 8)), values(rng, "float32", constant)
    for inputs, expected in (([Spec("float32", a.shape), b], a - b), ([b, Spec("float32", a.shape)], b - a)):
        model = one_op_model("SUB", inputs, [Spec("float32", a.shape)], SubOptions())
        np.testing.assert_array_equal(run_op(model, a)[0], expected)


def test_equal_scales_add_exactly() -> None:
    tensors = [Spec("int8", [3], 0.5, 1), Spec("int8", [3], 0.5, -2)]
    model = one_op_model("ADD", tensors, [Spec("int8", [3], 0.5, 3)], AddOptions())
    # (11 - 1) + (8 + 2) + 3, and both ends saturate.
    a, b = np.array([11, 127, -128], np.int8), np.array([8, 127, -128], np.int8)
    assert run_op(model, a, b)[0].tolist() == [23, 127, -128]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("constant", [None, 0, 1])
@pytest.mark.parametrize("shapes", [SHAPES[0], SHAPES[1], SHAPES[2], ((30, 50), (30, 50))])
def test_quantized_results_equal_litert(
    op: str, dtype: Any, constant: int | None, shapes: Any, litert: Callable[..., Any]
) -> None:
    rng = np.random.default_rng(hash((op, np.dtype(dtype).name, constant, shapes)) & 0xFFFF)
    feeds = [values(rng, dtype, shape) for shape in shapes]
    point = 0 if dtype is np.int16 else 5
    scales = np.exp(rng.uniform(-4, 0, 3)).astype(np.float32)
    specs = [Spec(dtype, shape, scale, point) for shape, scale in zip(shapes, scales)]
    if constant is not None:
        specs[constant] = specs[constant]._replace(data=feeds.pop(constant))
    options = OPS[op][1](fused_activation_function=Activation.RELU)
    output = Spec(dtype, np.broadcast_shapes(*shapes), scales[2], point)
    model = one_op_model(op, specs, [output], options)
    np.testing.assert_array_equal(run_op(model, *feeds)[0], litert(model, *feeds)[0])


@pytest.mark.parametrize(("op", "expected"), [("ADD", [1003, -32768]), ("SUB", [997, -32767])])
def test_scales_of_powers_of_two_shift_the_finer_input(op: str, expected: list[int]) -> None:
    options = OPS[op][1](pot_scale_int16=True)
    tensors = [Spec("int16", [2], 2.0**-8, 0), Spec("int16", [2], 2.0**-10, 0)]
    model = one_op_model(op, tensors, [Spec("int16", [2], 2.0**-8, 0)], options)
    # 10 / 4 is rounded away from zero.
    assert run_op(model, np.array([1000, -32768], np.int16), np.array([10, -2], np.int16))[0].tolist() == expected


def test_complex_numbers_multiply() -> None:
    a, b = np.array([1 + 2j, 3j], np.complex64), np.array([2 - 1j, 1j], np.complex64)
    model = one_op_model("MUL", [Spec("complex64", [2]), Spec("complex64", [2])], [Spec("complex64", [2])], MulOptions())
    np.testing.assert_allclose(run_op(model, a, b)[0], [4 + 3j, -3])


REFUSED: list[tuple[str, list[Spec], Spec, Any, str]] = [
    (
        "ADD",
        [Spec("float32", [2, 3]), Spec("float32", [2])],
        Spec("float32", [2, 3]),
        None,
        r"\[2, 3\] and \[2\], are not broadcastable",
    ),
    ("SUB", [Spec("float32", [2]), Spec("int32", [2])], Spec("float32", [2]), None, "same type.*FLOAT32.*INT32"),
    ("MUL", [Spec("float32", [2])], Spec("float32", [2]), None, "1 inputs"),
    ("ADD", [Spec("bool", [2]), Spec("bool", [2])], Spec("bool", [2]), None, "BOOL"),
    ("ADD", [Spec("int8", [2], 0.0, 0), Spec("int8", [2], 1.0, 0)], Spec("int8", [2], 1.0, 0), None, "scale 0"),
    ("SUB", [Spec("int8", [2]), Spec("int8", [2], 1.0, 0)], Spec("int8", [2], 1.0, 0), None, "no quantization"),
    ("SUB", [Spec("int8", [2], 1.0, 300), Spec("int8", [2], 1.0, 0)], Spec("int8", [2], 1.0, 0), None, "zero point 300"),
    ("ADD", [Spec("int8", [2], 1.0, 1000), Spec("int8", [2], 1.0, 0)], Spec("int8", [2], 1.0, 0), None, "zero point 1000"),
    ("ADD", [Spec("int16", [2], 1.0, 3), Spec("int16", [2], 1.0, 0)], Spec("int16", [2], 1.0, 0), None, "zero point 3"),
    ("ADD", [Spec("int8", [2], 1.0, 0), Spec("int8", [2], 1.0, 0)], Spec("int8", [2], 1e-9, 0), None, "scale 1e-09, too fine"),
    ("ADD", [Spec("int16", [2], 0.5, 0), Spec("int16", [2], 0.5, 0)], Spec("int16", [2], 1.0, 0), None, r"2\*\*-1 and 2\*\*-1"),
    ("MUL", [Spec("int32", [2]), Spec("int32", [2])], Spec("int8", [2], 1.0, 0), None, "INT32 to INT8"),
    ("MUL", [Spec("complex64", [2]), Spec("complex64", [2])], Spec("complex64", [2]), "RELU", "COMPLEX64.*RELU"),
]


@pytest.mark.parametrize(("op", "inputs", "output", "activation", "message"), REFUSED)
def test_refuses(op: str, inputs: list[Spec], output: Spec, activation: str | None, message: str) -> None:
    options = OPS[op][1](fused_activation_function=Activation[activation or "NONE"])
    feeds = [np.zeros(spec.shape, spec.type) for spec in inputs]
    with pytest.raises((ModelError, PrepareError), match=message):
        run_op(one_op_model(op, inputs, [output], options), *feeds)


def test_a_sum_has_the_type_of_its_inputs_whatever_the_model_says() -> None:
    model = one_op_model("ADD", [Spec("int8", [2], 1.0, 0)] * 2, [Spec("float32", [2], 1.0, 0)], AddOptions())
    a = np.array([1, 2], np.int8)
    assert run_op(model, a, a)[0].dtype == np.int8
