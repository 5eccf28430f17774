"""Compiled means, resizes and searches answer as the numpy kernels do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plugins.compiled_ops.tests.compiled import is_compiled
from plugins.compiled_ops.tests.conftest import answer
from tests.budgets import examples

from oplet.schema.options import (
    ArgMaxOptions,
    ArgMinOptions,
    NonMaxSuppressionV4Options,
    NonMaxSuppressionV5Options,
    ReducerOptions,
    ResizeBilinearOptions,
    ScatterNdOptions,
    TopKV2Options,
)
from oplet_testing import Spec, one_op_model

SLOWLY = settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def models(draw: st.DrawFn) -> tuple[bytes, list[Any]]:
    """A model of MEAN, SUM, RESIZE_BILINEAR, ARG_MAX or SCATTER_ND."""
    op = draw(st.sampled_from(["MEAN", "SUM", "RESIZE_BILINEAR", "ARG_MAX", "SCATTER_ND"]))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = tuple(draw(st.integers(1, 9)) for _ in range(3)) + (draw(st.sampled_from([1, 3, 20, 33])),)
    kind = draw(st.sampled_from(["int8", "uint8"]))
    info = np.iinfo(kind)
    fed = random.integers(info.min, info.max + 1, shape).astype(kind)
    source = Spec(kind, shape, [0.1], [draw(st.integers(info.min, info.max))])
    if op in ("MEAN", "SUM"):
        axes = draw(st.sampled_from([[1, 2], [0], [3], [2, 3], [1, 3], [0, 1, 2, 3]]))
        output = Spec(kind, shape, [draw(st.floats(0.02, 0.3))], [draw(st.integers(info.min, info.max))])
        options: Any = ReducerOptions(keep_dims=draw(st.booleans()))
        if op == "SUM" or draw(st.booleans()):
            fed, source, output = fed.astype(np.float32), Spec("float32", shape), Spec("float32", shape)
        return one_op_model(op, [source, np.array(axes, np.int32)], [output], options, version=2), [fed]
    if op == "RESIZE_BILINEAR":
        size = np.array([draw(st.integers(1, 20)), draw(st.integers(1, 20))], np.int32)
        align = draw(st.booleans())
        options = ResizeBilinearOptions(align_corners=align, half_pixel_centers=not align and draw(st.booleans()))
        return one_op_model(op, [source, size], [source], options, version=3), [fed]
    if op == "ARG_MAX":
        axis = np.array(draw(st.sampled_from([-1, 3, 1])), np.int32)
        options = ArgMaxOptions(output_type=2)
        if draw(st.booleans()):
            fed = np.where(random.random(shape) < 0.4, np.nan, fed).astype(np.float32)
            source = Spec("float32", shape)
        return one_op_model(op, [source, axis], [Spec("int32", shape[:3])], options), [fed]
    rows = draw(st.integers(1, 30))
    indices = random.integers(0, 9, (rows, 2)).astype(np.int32)
    updates = random.integers(-9, 9, (rows, 5)).astype(draw(st.sampled_from(["float32", "int32", "int8"])))
    target = np.array([9, 9, 5], np.int32)
    inputs = [indices if draw(st.booleans()) else Spec("int32", indices.shape), Spec(updates.dtype, updates.shape), target]
    values = [updates] if isinstance(inputs[0], np.ndarray) else [indices, updates]
    return one_op_model(op, inputs, [Spec(updates.dtype, (9, 9, 5))], ScatterNdOptions()), values


@SLOWLY
@given(case=models())
def test_models_agree(case: tuple[bytes, list[Any]], agree: Callable[..., None]) -> None:
    agree(*case)


@pytest.mark.parametrize("shape", [(1, 24, 25, 16), (2, 40, 16, 19), (1, 66, 97, 3)])
def test_means_of_long_columns_are_the_same_bits_for_any_number_of_threads(
    shape: tuple[int, ...], agree: Callable[..., None]
) -> None:
    fed = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    inputs = [Spec("float32", shape), np.array([1, 2], np.int32)]
    model = one_op_model("MEAN", inputs, [Spec("float32", (shape[0], shape[3]))], ReducerOptions(keep_dims=False))
    assert is_compiled(model)
    agree(model, [fed], 2)
    one, two = (answer(model, [fed], ["oplet-builtin-ops", "oplet-compiled-ops"], threads)[0] for threads in (1, 2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("sigma", [None, 0.0, 0.4])
@pytest.mark.parametrize(
    ("overlap", "distinct", "flat"), [(0.5, True, False), (0.3, False, False), (0.5, True, True), (1.5, True, False)]
)
def test_suppressions_agree(overlap: float, distinct: bool, flat: bool, sigma: float | None, agree: Callable[..., None]) -> None:
    random = np.random.default_rng(7)
    boxes = random.random((60, 4)).astype(np.float32)
    boxes[::5, 2:] = boxes[::5, :2] + np.float32(0.3)
    scores = random.permutation(60).astype(np.float32) / 60
    if not distinct:
        scores = np.round(scores * 8) / np.float32(8)
    if flat:
        boxes[scores.argsort()[-3], 2:] = boxes[scores.argsort()[-3], :2]
    constants = [np.array(12, np.int32), np.array(overlap, np.float32), np.array(0.2, np.float32)]
    outputs = [Spec("int32", [12]), Spec("int32", [])]
    options: Any = NonMaxSuppressionV4Options()
    if sigma is not None:
        constants.append(np.array(sigma, np.float32))
        outputs.insert(1, Spec("float32", [12]))
        options = NonMaxSuppressionV5Options()
    op = f"NON_MAX_SUPPRESSION_V{4 if sigma is None else 5}"
    agree(one_op_model(op, [Spec("float32", (60, 4)), Spec("float32", [60]), *constants], outputs, options), [boxes, scores])


@pytest.mark.parametrize("kind", ["float32", "int8", "uint8", "int16", "int32", "int64"])
@pytest.mark.parametrize("k", [1, 3, 7])
def test_the_largest_values_of_rows_are_numpys(kind: str, k: int) -> None:
    random = np.random.default_rng(k)
    x = random.integers(0, 5, (4, 7)).astype(kind)
    if kind == "float32":
        x[0, :3], x[1, 2], x[2, 0] = np.nan, -np.inf, -0.0
    inputs = [Spec(kind, x.shape), np.array(k, np.int32)]
    model = one_op_model("TOPK_V2", inputs, [Spec(kind, (4, k)), Spec("int32", (4, k))], TopKV2Options())
    assert is_compiled(model)
    for one, other in zip(
        answer(model, [x], ["oplet-builtin-ops"]), answer(model, [x], ["oplet-builtin-ops", "oplet-compiled-ops"])
    ):
        np.testing.assert_array_equal(other, one)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("kind", ["float32", "int8", "uint8", "int32"])
@pytest.mark.parametrize("op", ["ARG_MIN", "ARG_MAX"])
def test_positions_along_any_axis_are_numpys(op: str, kind: str, axis: int, agree: Callable[..., None]) -> None:
    random = np.random.default_rng(axis)
    x = random.integers(0, 4, (3, 5, 40)).astype(kind)
    if kind == "float32":
        x[random.random(x.shape) < 0.3] = np.nan
        x[0, 0], x[:, 1, 1], x[0, :, 2] = np.nan, np.nan, np.inf if op == "ARG_MIN" else -np.inf
    options = {"ARG_MIN": ArgMinOptions, "ARG_MAX": ArgMaxOptions}[op](output_type=2)
    output = [length for place, length in enumerate(x.shape) if place != axis]
    model = one_op_model(op, [Spec(kind, x.shape), np.array(axis, np.int32)], [Spec("int32", output)], options)
    assert is_compiled(model)
    agree(model, [x])
