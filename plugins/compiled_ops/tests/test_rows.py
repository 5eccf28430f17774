"""Compiled sums, products, norms and softmaxes of rows answer as the numpy kernels do: of integers bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plugins.compiled_ops.tests.compiled import is_compiled
from tests.budgets import examples

from oplet.schema.options import L2NormOptions, LocalResponseNormalizationOptions, ReducerOptions, SoftmaxOptions
from oplet_testing import Spec, one_op_model

SLOWLY = settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
SEEDS = st.integers(0, 2**32 - 1)


def values(random: np.random.Generator, kind: str, shape: tuple[int, ...]) -> Any:
    if kind == "float32":
        return (random.standard_normal(shape) * 4).astype(np.float32)
    info = np.iinfo(kind)
    return random.integers(info.min, info.max + 1, shape).astype(kind)


@st.composite
def reductions(draw: st.DrawFn) -> tuple[bytes, list[Any]]:
    """A SUM or a product of quantized numbers over axes that are neighbours, or not."""
    op = draw(st.sampled_from(["SUM", "REDUCE_PROD"]))
    kinds = ["int8", "int16"] if op == "REDUCE_PROD" else ["int8", "int16", "uint8", "float32", "int32", "int64"]
    kind = draw(st.sampled_from(kinds))
    random = np.random.default_rng(draw(SEEDS))
    shape = tuple(draw(st.lists(st.integers(1, 7), min_size=1, max_size=4)))
    axes = draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, max_size=3, unique=True))
    kept = tuple(length for axis, length in enumerate(shape) if axis not in axes)
    specs = Spec(kind, shape), Spec(kind, kept)
    if kind in ("int8", "uint8", "int16"):
        zeros = [0, 0] if kind == "int16" else [draw(st.integers(0, 100)) for _ in range(2)]
        scales = [draw(st.sampled_from([0.01, 0.05, 0.7])) for _ in range(2)]
        specs = Spec(kind, shape, [scales[0]], [zeros[0]]), Spec(kind, kept, [scales[1]], [zeros[1]])
    inputs = [specs[0], np.array(axes, np.int32)]
    return one_op_model(op, inputs, [specs[1]], ReducerOptions(), version=2), [values(random, kind, shape)]


@SLOWLY
@given(case=reductions())
def test_sums_and_products_are_numpys(case: tuple[bytes, list[Any]], agree: Callable[..., None]) -> None:
    agree(*case)


def test_a_softmax_of_a_negative_factor_exceeds_floats_where_numpys_does(agree: Callable[..., None]) -> None:
    x = np.array([[0, 300, -300], [1, 2, 3], [-np.inf, 0, 1]], np.float32)
    agree(one_op_model("SOFTMAX", [Spec("float32", x.shape)], [Spec("float32", x.shape)], SoftmaxOptions(beta=-1.0)), [x])


@pytest.mark.parametrize("kind", ["float32", "int8", "int16", "uint8", "int32", "int64"])
def test_sums_are_compiled(kind: str) -> None:
    scales: Any = [([0.5], [0]), ([0.25], [0])] if kind in ("int8", "int16", "uint8") else [(), ()]
    for axes in ([0], [1], [0, 1]):
        output = [length for axis, length in enumerate((4, 5)) if axis not in axes]
        inputs = [Spec(kind, (4, 5), *scales[0]), np.array(axes, np.int32)]
        assert is_compiled(one_op_model("SUM", inputs, [Spec(kind, output, *scales[1])], ReducerOptions(), version=2))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", [(1,), (3, 7), (200, 64), (2, 3, 4, 5)])
@pytest.mark.parametrize("kind", ["float32", "int8", "uint8"])
def test_norms_of_rows_are_numpys(kind: str, shape: tuple[int, ...], threads: int, agree: Callable[..., None]) -> None:
    random = np.random.default_rng(1)
    source, output = Spec(kind, shape), Spec(kind, shape)
    if kind != "float32":
        source = Spec(kind, shape, [0.05], [7])
        output = Spec(kind, shape, [1 / 128], [0 if kind == "int8" else 128])
    model = one_op_model("L2_NORMALIZATION", [source], [output], L2NormOptions(), version=2)
    assert is_compiled(model)
    for x in (values(random, kind, shape), np.full(shape, 7, kind), np.full(shape, 8, kind), np.full(shape, 120, kind)):
        agree(model, [x], threads=threads)


def test_rows_of_wrapped_sums_have_numpys_norms(agree: Callable[..., None]) -> None:
    shape = (2, 40000)
    source = Spec("int8", shape, [0.05], [127])
    model = one_op_model("L2_NORMALIZATION", [source], [Spec("int8", shape, [1 / 128], [0])], L2NormOptions(), version=2)
    agree(model, [np.full(shape, -128, np.int8)])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("beta", [1.0, 0.5, 0.75])
@pytest.mark.parametrize("radius", [0, 2, 2**31 - 1])
def test_a_response_normalization_is_numpys(radius: int, beta: float, threads: int, agree: Callable[..., None]) -> None:
    shape = (2, 30, 20, 9)
    options = LocalResponseNormalizationOptions(radius=radius, bias=0.3, alpha=0.2, beta=beta)
    model = one_op_model("LOCAL_RESPONSE_NORMALIZATION", [Spec("float32", shape)], [Spec("float32", shape)], options)
    assert is_compiled(model)
    agree(model, [values(np.random.default_rng(2), "float32", shape)], threads=threads)


@pytest.mark.parametrize("beta", [1.0, 0.2])
@pytest.mark.parametrize("shape", [(5,), (3, 40), (2, 3, 700)])
@pytest.mark.parametrize("scale", [1e-4, 0.01])
def test_a_softmax_of_int16_is_numpys(shape: tuple[int, ...], scale: float, beta: float, agree: Callable[..., None]) -> None:
    specs = Spec("int16", shape, [scale], [0]), Spec("int16", shape, [1 / 32768], [0])
    model = one_op_model("SOFTMAX", [specs[0]], [specs[1]], SoftmaxOptions(beta=beta), version=3)
    assert is_compiled(model)
    random = np.random.default_rng(3)
    for x in (values(random, "int16", shape), np.zeros(shape, np.int16), random.integers(-300, 300, shape).astype(np.int16)):
        agree(model, [x])
