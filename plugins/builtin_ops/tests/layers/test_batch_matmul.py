"""BATCH_MATMUL against LiteRT, and against numpy where LiteRT is known to err."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from oplet import OpResolverType
from oplet.errors import OpletError
from oplet.schema.options import BatchMatMulOptions
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec

SHAPES = [
    ((4, 5), (5, 3)),
    ((2, 4, 5), (2, 5, 3)),
    ((2, 4, 5), (1, 5, 3)),
    ((2, 4, 5), (5, 3)),
    ((4, 5), (2, 5, 3)),
    ((2, 3, 4, 5), (2, 1, 5, 6)),
    ((3, 4, 5), (2, 3, 5, 6)),
    ((2, 0, 5), (2, 5, 3)),
    ((2, 4, 0), (2, 0, 3)),
]


def draw(type: str, shape: tuple[int, ...]) -> np.ndarray:
    rng = np.random.default_rng(len(shape))
    if type == "float32":
        return rng.normal(size=shape).astype(np.float32)
    limits = np.iinfo(type)
    return rng.integers(limits.min, limits.max, shape, endpoint=True, dtype=type)


def spec(type: str, shape: tuple[int, ...], scale: Any, zero_point: int, data: Any = None) -> Spec:
    if type in ("float32", "int32"):
        return Spec(type, shape, data=data)
    scales = np.atleast_1d(scale).tolist()
    return Spec(type, shape, scale=scales, zero_point=[zero_point] * len(scales), axis=len(shape) - 1, data=data)


def swapped(shape: tuple[int, ...], yes: bool) -> tuple[int, ...]:
    return (*shape[:-2], shape[-1], shape[-2]) if yes else shape


def model_of(
    types: tuple[str, str, str], shapes: Any, options: BatchMatMulOptions, constant: bool, scale: Any = 0.03
) -> tuple[bytes, list[np.ndarray]]:
    left = draw(types[0], swapped(shapes[0], options.adj_x))
    right = draw(types[1], swapped(shapes[1], options.adj_y))
    symmetric = types[0] in ("int16", "float32")
    inputs = [
        spec(types[0], left.shape, 0.02, 0 if symmetric else 3),
        spec(types[1], right.shape, scale, 0 if symmetric else -5, right if constant else None),
    ]
    output = spec(types[2], (1,), 30.0 if types[0] == "int16" else 0.08, 0 if symmetric else 7)
    version = 4 if options.asymmetric_quantize_inputs else 3
    return one_op_model("BATCH_MATMUL", inputs, [output], options, version=version), [left] if constant else [left, right]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize(
    "types",
    [
        ("float32", "float32", "float32"),
        ("int8", "int8", "int8"),
        ("int8", "int8", "int32"),
        ("int16", "int16", "int16"),
        ("int16", "int8", "int16"),
    ],
    ids="-".join,
)
def test_equals_litert(litert: Callable[..., list[Any]], shapes: Any, types: Any) -> None:
    for adj_x, adj_y, constant in product([False, True], repeat=3):
        model, feeds = model_of(types, shapes, BatchMatMulOptions(adj_x=adj_x, adj_y=adj_y), constant)
        mine, theirs = run_op(model, *feeds)[0], litert(model, *feeds)[0]
        assert mine.dtype == theirs.dtype
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6) if types[0] == "float32" else (
            np.testing.assert_array_equal(mine, theirs)
        )


@pytest.mark.parametrize("asymmetric", [False, True])
@pytest.mark.parametrize("shapes", [((4, 5), (5, 3)), ((2, 4, 5), (2, 5, 3)), ((2, 4, 5), (5, 3))], ids=str)
def test_hybrid_equals_litert(litert: Callable[..., list[Any]], shapes: Any, asymmetric: bool) -> None:
    for adj_x, adj_y, constant in product([False, True], repeat=3):
        options = BatchMatMulOptions(adj_x=adj_x, adj_y=adj_y, asymmetric_quantize_inputs=asymmetric)
        model, feeds = model_of(("float32", "int8", "float32"), shapes, options, constant)
        np.testing.assert_allclose(
            run_op(model, *feeds, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)[0],
            litert(model, *feeds)[0],
            rtol=1e-5,
            atol=1e-5,
        )


def test_hybrid_scales_each_row_of_several_batch_dimensions_by_itself() -> None:
    # LiteRT takes the scales of wrong rows here.
    types, shapes = ("float32", "int8", "float32"), ((2, 3, 4, 5), (2, 3, 5, 6))
    model, (left, right) = model_of(types, shapes, BatchMatMulOptions(), False)
    np.testing.assert_allclose(run_op(model, left, right)[0], left @ (right * np.float32(0.03)), atol=0.3)


@pytest.mark.parametrize("types", [("int8", "int8", "int8"), ("int16", "int8", "int16")], ids="-".join)
def test_columns_have_scales_of_their_own(types: Any) -> None:
    # LiteRT gives the zero point everywhere here.
    scales = np.array([0.01, 0.02, 0.04])
    model, (left,) = model_of(types, ((4, 5), (5, 3)), BatchMatMulOptions(), True, scales)
    right = draw(types[1], (5, 3)).astype(np.int64)
    if types[0] == "int8":
        real = (left.astype(np.int64) - 3) @ (right + 5) * (0.02 * scales / 0.08)
        np.testing.assert_allclose(run_op(model, left)[0], np.clip(real + 7, -128, 127), atol=1)
    else:
        real = left.astype(np.int64) @ right * (0.02 * scales / 30.0)
        np.testing.assert_allclose(run_op(model, left)[0], np.clip(real, -32768, 32767), atol=1)


@pytest.mark.parametrize(
    ("types", "shapes", "message"),
    [
        (("float32", "int16", "float32"), ((4, 5), (5, 3)), "does not multiply FLOAT32 with INT16"),
        (("int8", "int8", "int16"), ((4, 5), (5, 3)), "of type INT16"),
        (("float32", "float32", "float32"), ((4, 5), (4, 3)), "rows of 5 values .* columns of 4"),
        (("float32", "float32", "float32"), ((2, 4, 5), (3, 5, 3)), "do not broadcast"),
        (("float32", "float32", "float32"), ((5,), (5, 3)), "must have 2 to 6 dimensions"),
    ],
)
def test_what_litert_refuses_is_refused(types: Any, shapes: Any, message: str) -> None:
    model, feeds = model_of(types, shapes, BatchMatMulOptions(), True)
    with pytest.raises(OpletError, match=message):
        run_op(model, *feeds)
