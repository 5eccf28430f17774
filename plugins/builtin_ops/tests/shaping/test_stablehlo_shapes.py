"""StableHLO ops that move values: each against one numpy expression, STABLEHLO_GATHER against LiteRT too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oplet import Interpreter, TensorType
from oplet.errors import OpletError
from oplet.schema import stablehlo_options as options
from oplet_testing import call_op, one_op_model, run_op
from oplet_testing.one_op import Spec

VALUES = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def longs(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def run(op: str, arrays: Any, shape: Any, table: Any = None) -> np.ndarray:
    inputs = [np.asarray(array) for array in arrays]
    type = inputs[0].dtype if inputs else np.dtype(np.float32)
    return call_op(f"STABLEHLO_{op}", inputs, [Spec(type, shape)], table)[0]


CASES = {
    "reshape": ("RESHAPE", [VALUES], (4, 6), None, VALUES.reshape(4, 6)),
    "reshape to scalar": ("RESHAPE", [np.array([[5]], np.int8)], (), None, np.array(5, np.int8)),
    "transpose": (
        "TRANSPOSE", [VALUES], (4, 2, 3), options.StablehloTransposeOptions(permutation=longs(2, 0, 1)), VALUES.transpose(2, 0, 1)
    ),
    "slice": (
        "SLICE",
        [VALUES],
        (1, 2, 2),
        options.StablehloSliceOptions(start_indices=longs(1, 0, 1), limit_indices=longs(2, 3, 4), strides=longs(1, 2, 2)),
        VALUES[1:2, 0:3:2, 1:4:2],
    ),
    "empty slice": (
        "SLICE",
        [VALUES],
        (0, 3, 4),
        options.StablehloSliceOptions(start_indices=longs(1, 0, 0), limit_indices=longs(1, 3, 4), strides=longs(1, 1, 1)),
        VALUES[1:1],
    ),
    "concatenate": (
        "CONCATENATE",
        [VALUES, VALUES[:, :1], VALUES[:, :0]],
        (2, 4, 4),
        options.StablehloConcatenateOptions(dimension=1),
        np.concatenate([VALUES, VALUES[:, :1]], 1),
    ),
    "broadcast": (
        "BROADCAST_IN_DIM",
        [VALUES[0, :, :1]],
        (2, 3, 5),
        options.StablehloBroadcastInDimOptions(broadcast_dimensions=longs(1, 0)),
        np.broadcast_to(VALUES[0, :, :1].T[..., None], (1, 3, 5)).repeat(2, 0),
    ),
    "broadcast of a scalar": (
        "BROADCAST_IN_DIM", [np.float32(3)], (2, 2), options.StablehloBroadcastInDimOptions(), np.full((2, 2), 3, np.float32)
    ),
    "iota": ("IOTA", [], (2, 3), options.StablehloIotaOptions(iota_dimension=1), np.array([[0, 1, 2]] * 2, np.float32)),
    "dynamic slice": (
        "DYNAMIC_SLICE",
        [VALUES, np.int32(1), np.int32(-4), np.int32(3)],
        (1, 2, 3),
        options.StablehloDynamicSliceOptions(slice_sizes=longs(1, 2, 3)),
        VALUES[1:, :2, 1:],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_moves(case: str) -> None:
    op, arrays, shape, table, want = CASES[case]
    got = run(op, arrays, shape, table)
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    np.testing.assert_array_equal(got, want)


def test_broadcast_puts_axes_where_it_is_told() -> None:
    table = options.StablehloBroadcastInDimOptions(broadcast_dimensions=longs(2, 0))
    source = VALUES[0]  # (3, 4)
    want = np.broadcast_to(source.T[:, None, :], (4, 2, 3))
    np.testing.assert_array_equal(run("BROADCAST_IN_DIM", [source], (4, 2, 3), table), want)


def test_dynamic_update_slice() -> None:
    want = VALUES.copy()
    want[0, 1:3, 1:2] = -1
    update = np.full((1, 2, 1), -1, np.float32)
    got = run("DYNAMIC_UPDATE_SLICE", [VALUES, update, np.int64(-1), np.int64(7), np.int64(1)], (2, 3, 4))
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("op", "arrays", "shape", "table", "message"),
    [
        ("RESHAPE", [VALUES], (5, 5), None, "has 24 values, which cannot be given the shape"),
        ("TRANSPOSE", [VALUES], (1,), options.StablehloTransposeOptions(permutation=longs(0, 0, 1)), "must be different axes"),
        ("CONCATENATE", [VALUES, VALUES[:, :, :2]], (1,), options.StablehloConcatenateOptions(dimension=1), "the same shape but"),
        ("IOTA", [], (2, 3), options.StablehloIotaOptions(iota_dimension=2), r"iota_dimension is \[2\]"),
        (
            "SLICE",
            [VALUES],
            (1,),
            options.StablehloSliceOptions(start_indices=longs(0, 0, 0), limit_indices=longs(2, 3, 5), strides=longs(1, 1, 1)),
            "from 0 to 5 .* not inside a dimension of 4",
        ),
        ("CUSTOM_CALL", [VALUES], (1,), options.StablehloCustomCallOptions(call_target_name="tanh_v2"), "it calls 'tanh_v2'"),
    ],
)
def test_refuses(op: str, arrays: Any, shape: Any, table: Any, message: str) -> None:
    with pytest.raises(OpletError, match=message):
        run(op, arrays, shape, table)


GATHERS = [
    # indices shape, offset_dims, collapsed_slice_dims, start_index_map, index_vector_dim, slice_sizes, output rank
    ((5, 2), (1, 2), (0,), (0, 1), 1, (1, 2, 3), 3),
    ((2, 5), (0, 2), (1,), (2, 0), 0, (2, 1, 2), 3),
    ((2, 3, 3), (2,), (0, 2), (1, 0, 2), 2, (1, 2, 1), 3),
    ((4, 1), (1, 2, 3), (), (2,), 1, (2, 3, 1), 4),
]


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("type", ["float32", "float16", "int8", "int64", "bool", "complex64"])
@pytest.mark.parametrize(("shape", "offset", "collapsed", "mapped", "axis", "sizes", "rank"), GATHERS)
def test_gather_equals_litert(
    litert: Callable[..., Any],
    shape: Any,
    offset: Any,
    collapsed: Any,
    mapped: Any,
    axis: int,
    sizes: Any,
    rank: int,
    type: str,
    index: str,
) -> None:
    table = options.StablehloGatherOptions(
        offset_dims=longs(*offset),
        collapsed_slice_dims=longs(*collapsed),
        start_index_map=longs(*mapped),
        index_vector_dim=axis,
        slice_sizes=longs(*sizes),
    )
    source = VALUES.astype(type)
    indices = np.random.default_rng(0).integers(-2, 6, shape).astype(index)
    model = one_op_model("STABLEHLO_GATHER", [Spec(type, source.shape), Spec(index, shape)], [Spec(type, (1,) * rank)], table)
    mine, theirs = run_op(model, source, indices)[0], litert(model, source, indices)[0]
    assert mine.shape == theirs.shape
    np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("type", [TensorType.FLOAT8_E5M2, TensorType.FLOAT8_E4M3FN, TensorType.BFLOAT16])
def test_gather_moves_types_that_are_none_of_numpys_own(type: TensorType) -> None:
    table = options.StablehloGatherOptions(
        offset_dims=longs(1), collapsed_slice_dims=longs(0), start_index_map=longs(0), index_vector_dim=1, slice_sizes=longs(1, 3)
    )
    model = one_op_model("STABLEHLO_GATHER", [Spec(type, [4, 3]), Spec("int32", [5, 1])], [Spec(type, [5, 3])], table)
    dtype = Interpreter(model_content=model).get_input_details()[0]["dtype"]
    source = np.arange(12).reshape(4, 3).astype(dtype)
    picked = np.array([[3], [0], [1], [3], [2]], np.int32)
    np.testing.assert_array_equal(run_op(model, source, picked)[0], source[picked[:, 0]])
