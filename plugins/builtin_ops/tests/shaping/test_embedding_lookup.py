"""Rows of tables: plain, quantized, and summed up."""

from __future__ import annotations

import numpy as np
import pytest

from oplet import ModelBuilder, TensorType
from oplet.errors import InvokeError, PrepareError
from oplet.schema.enums import CombinerType
from oplet.schema.options import EmbeddingLookupSparseOptions
from oplet.schema.tables import BlockwiseQuantization, QuantizationParameters
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec

ROWS = np.array([2, 0, 2], np.int32)


def lookup(table, output, shape):
    return one_op_model("EMBEDDING_LOOKUP", [Spec("int32", [3]), table], [Spec(output, [3, *shape[1:]])], version=3)


@pytest.mark.parametrize("shape", [(3, 4), (4, 2, 3)])
@pytest.mark.parametrize("dtype", ["float32", "int8", "int32", "bool"])
def test_rows_are_copied(litert, dtype, shape):
    table = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    model = lookup(table, dtype, shape)
    (result,) = run_op(model, ROWS)
    np.testing.assert_array_equal(result, table[ROWS])
    np.testing.assert_array_equal(result, litert(model, ROWS)[0])


@pytest.mark.parametrize("output", ["float32", "float16"])
@pytest.mark.parametrize("shape", [(3, 4), (3, 5), (3, 2, 3), (3, 1), (3, 7)])
@pytest.mark.parametrize("scales", [[0.5], [0.5, 0.03, 0.1]])
@pytest.mark.parametrize("kind", [TensorType.INT8, TensorType.UINT8, TensorType.INT4, TensorType.INT2])
def test_quantized_rows_become_floats_as_in_litert(litert, kind, scales, shape, output):
    limit = {TensorType.INT4: 8, TensorType.INT2: 2}.get(kind, 128)
    low = 0 if kind == TensorType.UINT8 else -limit
    values = np.random.default_rng(1).integers(low, low + 2 * limit, shape)
    data = values.astype(np.uint8 if kind == TensorType.UINT8 else np.int8)
    table = Spec(kind, shape, scales, [0] * len(scales), data=data)
    model = lookup(table, output, shape)
    np.testing.assert_array_equal(run_op(model, ROWS)[0], litert(model, ROWS)[0])


@pytest.mark.parametrize("output", [TensorType.FLOAT32, TensorType.FLOAT16])
@pytest.mark.parametrize("kind", [TensorType.INT4, TensorType.INT2])
def test_rows_quantized_by_blocks_become_floats_as_in_litert(kind, output, litert):
    # The reference kernels end at version 4.
    rng = np.random.default_rng(4)
    builder = ModelBuilder("blocks")
    graph = builder.add_subgraph()
    scales = graph.add_tensor("scales", TensorType.FLOAT16, [3, 2], data=rng.uniform(0.1, 1, (3, 2)).astype(np.float16))
    details = BlockwiseQuantization(scales=scales, zero_points=-1, block_size=8)
    limit = 8 if kind == TensorType.INT4 else 2
    values = rng.integers(-limit, limit, (3, 16)).astype(np.int8)
    table = graph.add_tensor("table", kind, [3, 16], data=values, quantization=QuantizationParameters(details=details))
    rows, result = graph.add_tensor("rows", TensorType.INT32, [3]), graph.add_tensor("result", output, [3, 16])
    graph.set_inputs(rows)
    graph.set_outputs(result)
    graph.add_operator("EMBEDDING_LOOKUP", [rows, table], [result], version=5)
    model = builder.to_bytes()
    np.testing.assert_array_equal(run_op(model, ROWS)[0], litert(model, ROWS, kernels=None)[0])


@pytest.mark.parametrize("row", [-1, 3])
def test_rows_that_do_not_exist_are_named(row):
    model = lookup(np.zeros((3, 4), np.float32), "float32", (3, 4))
    with pytest.raises(InvokeError, match=f"row {row} of"):
        run_op(model, np.array([0, row, 0], np.int32))


@pytest.mark.parametrize(
    ("table", "output", "message"),
    [
        (np.zeros(3, np.float32), "float32", "at least 2 dimensions"),
        (np.zeros((3, 4), np.int32), "float32", "INT32"),
        (np.zeros((3, 4), np.float32), "int8", "cannot become INT8"),
        (Spec("int8", [3, 4], [0.5], [3], data=np.zeros((3, 4), np.int8)), "float32", "zero point 3"),
        (Spec("int8", [3, 2], [0.5, 1], [0, 0], axis=1, data=np.zeros((3, 2), np.int8)), "float32", "dimension 1"),
    ],
)
def test_what_cannot_be_looked_up_is_refused(table, output, message):
    with pytest.raises(PrepareError, match=message):
        run_op(lookup(table, output, (3, 4)), ROWS)


@pytest.mark.parametrize("combiner", list(CombinerType))
@pytest.mark.parametrize("shape", [(5, 4), (3, 2, 4)])
def test_sums_of_rows_agree_with_litert(litert, combiner, shape):
    rng = np.random.default_rng(2)
    table = rng.normal(size=(6, *((3,) if len(shape) == 2 else (2, 3)))).astype(np.float32)
    positions = np.array(sorted({tuple(int(rng.integers(0, n)) for n in shape) for _ in range(9)}), np.int32)
    count = len(positions)
    rows, weights = rng.integers(0, 6, count).astype(np.int32), rng.normal(size=count).astype(np.float32)
    inputs = [Spec("int32", [count]), positions, np.array(shape, np.int32), weights, table]
    outputs = [Spec("float32", [*shape[:-1], *table.shape[1:]])]
    model = one_op_model("EMBEDDING_LOOKUP_SPARSE", inputs, outputs, EmbeddingLookupSparseOptions(combiner=combiner))
    np.testing.assert_allclose(run_op(model, rows)[0], litert(model, rows)[0], rtol=1e-5, atol=1e-6)


def test_a_sparse_look_up_in_an_empty_table_names_the_row():
    inputs = [
        Spec("int32", [1]),
        np.array([[0, 0]], np.int32),
        np.array([1, 1], np.int32),
        np.ones(1, np.float32),
        Spec("float32", [0, 3]),
    ]
    model = one_op_model("EMBEDDING_LOOKUP_SPARSE", inputs, [Spec("float32", [1, 3])], EmbeddingLookupSparseOptions())
    with pytest.raises(InvokeError, match=r"row \[2\] of .* is asked for, which has 0"):
        run_op(model, np.array([2], np.int32), np.zeros((0, 3), np.float32))
