"""FULLY_CONNECTED with weights that are stored sparse, of every pair of types, is the layer whose weights are stored dense."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oplet import TensorType
from oplet.builder import sparsify
from oplet.schema.options import FullyConnectedOptions
from oplet_testing import Spec, one_op_model, run_op

T = TensorType
BLOCKS: dict[str, tuple[list[int], list[int]]] = {
    "none": ([], []),
    "1x4": ([1], [4]),
    "1x16": ([1], [16]),
    "4x4": ([0, 1], [4, 4]),
}
#: The types of data and weights.
PAIRS = [
    (T.FLOAT32, T.FLOAT32), (T.FLOAT32, T.INT8), (T.FLOAT32, T.INT4), (T.FLOAT32, T.UINT8), (T.FLOAT32, T.FLOAT16),
    (T.FLOAT16, T.FLOAT16), (T.INT8, T.INT8), (T.INT8, T.INT4), (T.UINT8, T.UINT8), (T.INT16, T.INT8),
]  # fmt: skip
DTYPES: dict[TensorType, Any] = {T.FLOAT32: np.float32, T.FLOAT16: np.float16, T.UINT8: np.uint8, T.INT16: np.int16}


def spec(type: TensorType, shape: list[int], scale: float, **more: Any) -> Spec:
    if type in (T.FLOAT32, T.FLOAT16):
        return Spec(type, shape, **more)
    return Spec(type, shape, scale=scale, zero_point=128 if type is T.UINT8 else 0, **more)


@pytest.mark.parametrize("plugins", [["builtin_ops"], None], ids=["numpy", "compiled"])
@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: "-".join(type.name for type in pair))
def test_sparse_weights_are_those_that_are_stored_dense(pair: Any, blocks: str, plugins: Any) -> None:
    data, kind = pair
    random = np.random.default_rng(0)
    matrix = random.integers(0 if kind is T.UINT8 else -7, 8, (32, 64)).astype(DTYPES.get(kind, np.int8))
    matrix[random.uniform(size=(8, 4)).repeat(4, 0).repeat(16, 1) < 0.6] = 0
    map, lengths = BLOCKS[blocks]
    values, sparsity = sparsify(matrix, ["DENSE", "SPARSE_CSR"], block_map=map, block_size=lengths)
    x = random.integers(0, 100, (2, 64)).astype(DTYPES.get(data, np.int8))
    layers = [
        one_op_model(
            "FULLY_CONNECTED",
            [spec(data, [2, 64], 0.1), spec(kind, [32, 64], 0.02, data=stored, sparsity=table), None],
            [spec(data, [2, 32], 0.5)],
            FullyConnectedOptions(),
            version=11 if kind is T.INT4 else 8,
        )
        for stored, table in ((values, sparsity), (matrix, None))
    ]
    [found], [wanted] = (run_op(model, x, plugins=plugins) for model in layers)
    assert wanted.any()
    np.testing.assert_allclose(found.astype(float), wanted.astype(float), rtol=1e-3 if T.FLOAT16 in pair else 1e-6)
