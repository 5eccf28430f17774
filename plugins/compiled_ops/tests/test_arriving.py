"""Nodes that numpy's kernel runs until the compiled one is there: answers are those of numpy alone, then those of compiled kernels alone."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from tests.states.arriving import STATES, enter

from oplet import Interpreter
from oplet.runtime.memory.remembered import forget_plans
from oplet.schema import options
from oplet.schema.enums import Padding
from oplet_testing import Spec, invoke, one_op_model

_PAIRS: dict[str, Any] = {
    "ADD": options.AddOptions(),
    "SUB": options.SubOptions(),
    "MUL": options.MulOptions(),
    "DIV": options.DivOptions(),
    "MAXIMUM": None,
    "MINIMUM": None,
    "SQUARED_DIFFERENCE": None,
    "EQUAL": None,
    "NOT_EQUAL": None,
    "LESS": None,
    "LESS_EQUAL": None,
    "GREATER": None,
    "GREATER_EQUAL": None,
    "FLOOR_DIV": None,
    "FLOOR_MOD": None,
}
_COMPARISONS = {"EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"}
_QUANTIZED = {"ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", *_COMPARISONS}
#: The shapes of the operands, and of the output: as they are, one broadcast, both, of other ranks.
_SHAPES = [((2, 3, 4),) * 3, ((2, 3, 4), (1,), (2, 3, 4)), ((2, 1, 4), (1, 3, 1), (2, 3, 4)), ((3, 1), (2, 1, 4), (2, 3, 4))]
_SINGLE: dict[str, Any] = {
    "LOGISTIC": None,
    "TANH": None,
    "RELU": None,
    "RELU6": None,
    "HARD_SWISH": None,
    "ELU": None,
    "LEAKY_RELU": options.LeakyReluOptions(alpha=0.5),
    "GELU": options.GeluOptions(),
    "ABS": None,
    "EXP": None,
    "SOFTMAX": options.SoftmaxOptions(beta=1.0),
    "QUANTIZE": None,
    "L2_NORMALIZATION": options.L2NormOptions(),
    "AVERAGE_POOL_2D": options.Pool2DOptions(padding=Padding.SAME, stride_w=2, stride_h=2, filter_width=2, filter_height=2),
    "MAX_POOL_2D": options.Pool2DOptions(padding=Padding.SAME, stride_w=2, stride_h=2, filter_width=2, filter_height=2),
}
#: The scale and the zero point that an output has to have.
_FIXED = {"LOGISTIC": (1 / 256, -128), "TANH": (1 / 128, 0), "SOFTMAX": (1 / 256, -128), "L2_NORMALIZATION": (1 / 128, 0)}
_FIXED_16 = {"LOGISTIC": (1 / 32768, 0), "TANH": (1 / 32768, 0), "SOFTMAX": (1 / 32768, 0)}


def spec(kind: str, shape: tuple[int, ...], scale: float = 0.05, zero_point: int = 3, data: Any = None) -> Spec:
    if kind in ("int8", "int16"):
        return Spec(kind, shape, scale=scale, zero_point=0 if kind == "int16" else zero_point, data=data)
    return Spec(kind, shape, data=data)


def values(kind: str, shape: tuple[int, ...], seed: int) -> Any:
    random = np.random.default_rng(seed)
    if kind == "float32":
        return random.standard_normal(shape).astype(np.float32)
    return random.integers(1, 100, shape).astype(kind)


def pair(op: str, kind: str, shapes: Any, constant: int | None) -> tuple[bytes, list[Any]]:
    fed = [values(kind, shape, seed) for seed, shape in enumerate(shapes[:2])]
    inputs = [spec(kind, shape, data=fed[at] if at == constant else None) for at, shape in enumerate(shapes[:2])]
    output = Spec("bool", shapes[2]) if op in _COMPARISONS else spec(kind, shapes[2], 0.11, -7)
    return one_op_model(op, inputs, [output], _PAIRS[op]), [each for at, each in enumerate(fed) if at != constant]


def cases() -> list[Any]:
    found = []
    for op, shapes, constant in itertools.product(_PAIRS, _SHAPES, (None, 0, 1)):
        kinds = ["float32"] + ["int32"] * (op not in ("SQUARED_DIFFERENCE",)) + (["int8", "int16"] if op in _QUANTIZED else [])
        kinds = [kind for kind in kinds if not (kind == "int16" and op in _COMPARISONS | {"SQUARED_DIFFERENCE"})]
        # Units are the cases that need the most of a kernel: both operands are repeated.
        marks = [] if constant is None and shapes is _SHAPES[2] else [pytest.mark.sweep]
        found += [
            pytest.param(*pair(op, kind, shapes, constant), id=f"{op}-{kind}-{shapes}-{constant}", marks=marks) for kind in kinds
        ]
    for op, kind in itertools.product(_SINGLE, ("float32", "int8", "int16")):
        integers = (
            "ELU",
            "GELU",
            "L2_NORMALIZATION",
            "ABS",
            "EXP",
            "HARD_SWISH",
            "AVERAGE_POOL_2D",
            "MAX_POOL_2D",
            "RELU",
            "RELU6",
        )
        if (kind == "int16" and op in integers) or (kind == "float32" and op == "QUANTIZE"):
            continue
        shape = (2, 4, 6, 8)
        result = (2, 2, 3, 8) if "POOL" in op else shape
        same = (0.05, 3) if "POOL" in op else (0.11, -7)
        scale, zero_point = (_FIXED_16 if kind == "int16" else _FIXED).get(op, same)
        model = one_op_model(op, [spec(kind, shape)], [spec(kind, result, scale, zero_point)], _SINGLE[op])
        found.append(pytest.param(model, [values(kind, shape, 5)], id=f"{op}-{kind}"))
    return found


def answers(model: bytes, fed: list[Any]) -> list[Any]:
    interpreter = Interpreter(model_content=model)
    return [*invoke(interpreter, *fed), *invoke(interpreter, *fed)]


@pytest.mark.parametrize(("model", "fed"), cases())
def test_numpy_s_kernel_answers_as_if_there_were_no_other(model: bytes, fed: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = invoke(Interpreter(model_content=model, plugins=["oplet-builtin-ops"]), *fed)
    compiled = answers(model, fed)
    for state in STATES:
        with monkeypatch.context() as patch:
            enter(state, patch)
            got = answers(model, fed)
        forget_plans()
        exact = got[0].dtype.kind != "f"
        for one, two in zip(got, wanted * 2 if not STATES[state][1] else compiled, strict=True):
            assert (one.shape, one.dtype) == (two.shape, two.dtype)
            if exact or state == "never there":
                np.testing.assert_array_equal(one, two)
            else:
                np.testing.assert_allclose(one, two, rtol=2e-5, atol=2e-5)
