"""Compiled ops of one operand answer as the numpy kernels do: of integers and quantized numbers bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from plugins.compiled_ops.tests.compiled import is_compiled

from oplet import Interpreter
from oplet.errors import InvokeError
from oplet.schema.options import GeluOptions, LeakyReluOptions
from oplet_testing import Spec, invoke, one_op_model

#: The quantized types of ops that have a table.
TABLED: dict[str, list[str]] = {
    "ABS": ["int8", "int16"],
    "ELU": ["int8"],
    "EXP": ["int8", "int16"],
    "GELU": ["int8", "uint8", "int16"],
    "HARD_SWISH": ["int8", "uint8"],
    "LEAKY_RELU": ["int8", "uint8", "int16"],
    "LOG": ["int8", "int16"],
    "LOGISTIC": ["int8", "uint8", "int16"],
    "QUANTIZE": ["int8", "uint8", "int16"],
    "RELU": ["int8", "uint8", "int16"],
    "RELU6": ["int8", "uint8", "int16"],
    "RELU_0_TO_1": ["int8", "uint8"],
    "RELU_N1_TO_1": ["int8", "uint8"],
    "RSQRT": ["int8", "int16"],
    "SQRT": ["int8", "int16"],
    "TANH": ["int8", "uint8", "int16"],
}
#: The types without scales that others have.
PLAIN: dict[str, list[str]] = {
    "ABS": ["float32", "int16", "int32"],
    "CEIL": ["float32"],
    "COS": ["float32"],
    "EXP": ["float32"],
    "FLOOR": ["float32"],
    "LOG": ["float32"],
    "LOGICAL_NOT": ["bool"],
    "NEG": ["float32", "int8", "int16", "int32", "int64"],
    "RELU_0_TO_1": ["float32"],
    "ROUND": ["float32"],
    "SIGN": ["float32", "float64", "int32"],
    "SIN": ["float32"],
    "SQUARE": ["float32"],
}
OPTIONS: dict[str, Any] = {"GELU": GeluOptions(), "LEAKY_RELU": LeakyReluOptions(alpha=-0.3)}
ROOTS = ("SQRT", "RSQRT")


def every(kind: str) -> Any:
    """All values of a type of up to 16 bits."""
    return np.arange(1 << 8 * np.dtype(kind).itemsize).astype(f"u{np.dtype(kind).itemsize}").view(kind)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("op", "kind"), [(op, kind) for op, kinds in TABLED.items() for kind in kinds])
def test_quantized_numbers_are_numpys_whatever_their_value(op: str, kind: str, threads: int, agree: Callable[..., None]) -> None:
    zeros = {"int8": (-5, 7), "uint8": (120, 100), "int16": (0, 0)}[kind]
    scales = {"LOGISTIC": 1 / 32768 if kind == "int16" else 1 / 256, "TANH": 1 / 32768 if kind == "int16" else 1 / 128}
    zero = {("LOGISTIC", "int8"): -128, ("LOGISTIC", "uint8"): 0, ("TANH", "int8"): 0, ("TANH", "uint8"): 128}
    x = np.tile(every(kind), 40 if kind != "int16" else 1)
    if op in ROOTS:
        x = x[x >= zeros[0]]
    source = Spec(kind, x.shape, [0.02 if kind != "int16" else 1 / 4096], [zeros[0]])
    output = Spec(kind, x.shape, [scales.get(op, 0.03 if kind != "int16" else 1 / 2048)], [zero.get((op, kind), zeros[1])])
    model = one_op_model(op, [source], [output], OPTIONS.get(op))
    assert is_compiled(model)
    agree(model, [x], threads=threads)


@pytest.mark.parametrize(("source", "output"), [("int16", "int32"), ("int8", "uint8"), ("uint8", "int16"), ("int16", "int8")])
def test_numbers_of_one_quantization_become_another_s(source: str, output: str, agree: Callable[..., None]) -> None:
    x = every(source)
    zero = 0 if source == "int16" else 3
    model = one_op_model("QUANTIZE", [Spec(source, x.shape, [0.02], [zero])], [Spec(output, x.shape, [0.05], [0])])
    assert is_compiled(model)
    agree(model, [x])


@pytest.mark.parametrize(("op", "kind"), [(op, kind) for op, kinds in PLAIN.items() for kind in kinds])
def test_numbers_without_scales_are_numpys(op: str, kind: str, agree: Callable[..., None]) -> None:
    random = np.random.default_rng(0)
    if kind == "bool":
        x = random.random(50) < 0.5
    elif kind.startswith("float"):
        x = np.array([*(random.standard_normal(30) * 5), 0, -0.0, 0.5, -0.5, 2.5, 80, -80], kind)
    else:
        info = np.iinfo(kind)
        x = np.array([info.min, info.max, 0, 1, -1, 5, -7], kind)
    model = one_op_model(op, [Spec(kind, x.shape)], [Spec(kind, x.shape)])
    assert is_compiled(model)
    agree(model, [x])


@pytest.mark.parametrize("op", [op for op, kinds in PLAIN.items() if "float32" in kinds])
def test_floats_that_are_no_numbers_or_very_large_are_numpys(op: str) -> None:
    x = np.array([np.inf, -np.inf, np.nan, 1e9, -1e9, 200, -200, 0, -0.0], np.float32)
    model = one_op_model(op, [Spec("float32", x.shape)], [Spec("float32", x.shape)])
    wanted, found = (invoke(Interpreter(model_content=model, plugins=plugins), x)[0] for plugins in (["builtin_ops"], None))
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("op", ["HARD_SWISH", "NEG", "RELU", "RELU6", "RELU_0_TO_1", "RELU_N1_TO_1", "ROUND", "TANH"])
def test_zeros_keep_their_signs_as_in_litert(op: str) -> None:
    x = np.tile(np.array([0.0, -0.0, 1], np.float32), 11)
    model = one_op_model(op, [Spec("float32", x.shape)], [Spec("float32", x.shape)])
    assert is_compiled(model)
    found = invoke(Interpreter(model_content=model), x)[0]
    np.testing.assert_array_equal(np.signbit(found), np.signbit(-x if op == "NEG" else x))


@pytest.mark.parametrize("op", ["EXP", "LOG"])
def test_numpy_computes_many_numbers(op: str) -> None:
    assert not is_compiled(one_op_model(op, [Spec("float32", [5000])], [Spec("float32", [5000])]))


@pytest.mark.parametrize("kind", ["int8", "int16"])
@pytest.mark.parametrize("op", ROOTS)
def test_roots_of_values_below_zero_are_refused_with_numpys_message(op: str, kind: str) -> None:
    zero = -5 if kind == "int8" else 0
    model = one_op_model(op, [Spec(kind, [4], [0.02], [zero])], [Spec(kind, [4], [0.03], [zero])])
    assert is_compiled(model)
    messages = []
    for plugins in (["builtin_ops"], ["builtin_ops", "compiled_ops"]):
        interpreter = Interpreter(model_content=model, plugins=plugins)
        for _ in range(2):
            invoke(interpreter, np.array([7, zero, 100, 1], kind))
            with pytest.raises(InvokeError) as caught:
                invoke(interpreter, np.array([7, zero - 1, 100, zero - 3], kind))
            messages.append(str(caught.value).partition(" Node number")[0])
    assert len(set(messages)) == 1, messages
    assert f"holds {zero - 3}, below its zero point {zero}" in messages[0]
