"""DENSIFY and the reader of sparse constants behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oplet.errors import PrepareError
from oplet.schema.enums import DimensionType
from oplet.schema.tables import DimensionMetadata, Int32Vector, SparsityParameters, Uint8Vector
from oplet_builtin_ops.layers.sparse import densify
from oplet_testing.one_op import Spec, one_op_model, run_op


def dense(size: int) -> DimensionMetadata:
    return DimensionMetadata(format=DimensionType.DENSE, dense_size=size)


def compressed(segments: list[int], indices: list[int], vector: Any = Int32Vector) -> DimensionMetadata:
    dtype = np.uint8 if vector is Uint8Vector else np.int32
    return DimensionMetadata(
        format=DimensionType.SPARSE_CSR,
        array_segments=vector(values=np.array(segments, dtype)),
        array_indices=vector(values=np.array(indices, dtype)),
    )


def sparsity(order: list[int], levels: list[DimensionMetadata], block_map: list[int] | None = None) -> SparsityParameters:
    blocks = None if block_map is None else np.array(block_map, np.int32)
    return SparsityParameters(traversal_order=np.array(order, np.int32), block_map=blocks, dim_metadata=levels)


ROWS = sparsity([0, 1], [dense(3), compressed([0, 2, 2, 3], [0, 2, 3])])
#: The same matrix by columns, with short indices.
COLUMNS = sparsity([1, 0], [dense(4), compressed([0, 1, 1, 2, 3], [0, 0, 2], Uint8Vector)])
MATRIX = [[5, 0, 6, 0], [0, 0, 0, 0], [0, 0, 0, 7]]
#: Blocks of 2 x 2: the upper right one and the lower left one.
BLOCKS = sparsity([0, 1, 2, 3], [dense(2), compressed([0, 1, 2], [1, 0]), dense(2), dense(2)], [0, 1])


@pytest.mark.parametrize("parameters", [ROWS, COLUMNS])
def test_compressed_rows_and_columns(parameters: SparsityParameters) -> None:
    assert densify(np.array([5, 6, 7], np.int8), parameters, (3, 4)).tolist() == MATRIX


def test_blocks_are_stored_whole() -> None:
    result = densify(np.arange(1, 9, dtype=np.float32), BLOCKS, (4, 4))
    assert result.tolist() == [[0, 0, 1, 2], [0, 0, 3, 4], [5, 6, 0, 0], [7, 8, 0, 0]]


def test_both_dimensions_may_be_compressed() -> None:
    parameters = sparsity([0, 1], [compressed([0, 2], [0, 2]), compressed([0, 2, 3], [0, 2, 3])])
    assert densify(np.array([5, 6, 7], np.int8), parameters, (3, 4)).tolist() == MATRIX


@pytest.mark.parametrize(("parameters", "values", "shape"), [(ROWS, [5, 6, 7], (3, 4)), (BLOCKS, range(1, 9), (4, 4))])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_the_op_equals_litert(
    parameters: SparsityParameters, values: Any, shape: tuple[int, ...], dtype: str, litert: Callable[..., Any]
) -> None:
    spec = Spec(dtype, shape, data=np.array(values, dtype), sparsity=parameters)
    model = one_op_model("DENSIFY", [spec], [Spec(dtype, shape)])
    np.testing.assert_array_equal(run_op(model)[0], litert(model)[0])


REFUSED = [
    (sparsity([0, 0], [dense(3), dense(4)]), "not a permutation"),
    (sparsity([0, 1], [dense(3)]), "metadata of 1 dimensions"),
    (sparsity([0, 1], [dense(2), dense(4)]), "size 2; its dimension is 3 long"),
    (sparsity([0, 1], [dense(3), compressed([0, 2, 1, 3], [0, 2, 3])]), "run upwards"),
    (sparsity([0, 1], [dense(3), compressed([0, 2, 2, 9], [0, 2, 3])]), "to its 3 indices"),
    (sparsity([0, 1], [dense(3), compressed([0, 2, 3], [0, 2, 3])]), "take 4"),
    (sparsity([0, 1], [dense(3), compressed([], [])]), "0 segment bounds"),
    (sparsity([0, 1], [dense(3), compressed([0, 2, 2, 3], [0, 2, 4])]), r"index \[4\]"),
    (sparsity([0, 1], [dense(3), compressed([0, 2, 2, 3], [0, -2, 3])]), r"index \[-2\]"),
    (sparsity([0, 1], [dense(3), dense(4)]), "name 12 values, the buffer holds 3"),
    (sparsity([0, 1, 2], [dense(3), dense(4), dense(2)], [0]), "blocks of 2 do not divide dimension 0"),
    (sparsity([0, 1, 2], [dense(3), dense(4), dense(0)], [1]), "blocks of 0"),
    (sparsity([0, 1, 2], [dense(3), dense(4), dense(2)], [5]), r"block map \[5\]"),
    (sparsity([2, 1, 0], [dense(2), dense(2), dense(3)], [1]), "before all of the 2"),
    (sparsity([0, 1, 2], [dense(3), dense(2), compressed([0, 1], [0])], [1]), "block dimension is compressed"),
    (sparsity([0, 1], [compressed([0, 9], [0, 1, 2] * 3), dense(4)]), "stores 9 positions where there are 3"),
]


@pytest.mark.parametrize(("parameters", "message"), REFUSED)
def test_metadata_that_contradict_themselves_are_refused(parameters: SparsityParameters, message: str) -> None:
    with pytest.raises(PrepareError, match=message):
        densify(np.array([5, 6, 7], np.int8), parameters, (3, 4))


def test_the_op_takes_sparse_constants_only() -> None:
    model = one_op_model("DENSIFY", [np.zeros(3, np.float32)], [Spec("float32", [3])])
    with pytest.raises(PrepareError, match="is not sparse"):
        run_op(model)
