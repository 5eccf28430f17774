"""DEQUANTIZE of a constant that is stored sparse, without a DENSIFY, as TensorFlow's converter writes pruned float16 weights.

LiteRT reads what is stored as if it were dense, and past its end; the truth is the same constant stored dense.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oplet import DelegateContext, Interpreter, ModelBuilder, Node, SimpleDelegate, TensorType
from oplet.builder import sparsify
from oplet_testing import Spec, one_op_model, run_op

BLOCKS: dict[str, tuple[list[int], list[int]]] = {
    "none": ([], []),
    "1x4": ([1], [4]),
    "1x16": ([1], [16]),
    "4x1": ([0], [4]),
    "2x4": ([0, 1], [2, 4]),
}
#: Element types and quantizations: a float16 has none, a zero is stored as it is, whatever the zero point says.
TYPES: dict[str, tuple[TensorType, dict[str, Any]]] = {
    "float16": (TensorType.FLOAT16, {}),
    "int8": (TensorType.INT8, {"scale": 0.5, "zero_point": 3}),
    "int8 by channels": (TensorType.INT8, {"scale": list(np.linspace(0.1, 1, 8)), "zero_point": [0] * 8}),
    "uint8": (TensorType.UINT8, {"scale": 0.25, "zero_point": 2}),
    "int16": (TensorType.INT16, {"scale": 0.01, "zero_point": 0}),
    "int4": (TensorType.INT4, {"scale": 0.5, "zero_point": 0}),
}


def dense(low: int) -> Any:
    random = np.random.default_rng(1)
    values = random.integers(low, 7, (8, 32))
    values[random.uniform(size=(2, 2)).repeat(4, 0).repeat(16, 1) < 0.5] = 0
    values[0, 0] = 5
    return values


@pytest.mark.parametrize("plugins", [["builtin_ops"], None], ids=["numpy", "compiled"])
@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("format", [["DENSE", "SPARSE_CSR"], ["SPARSE_CSR", "SPARSE_CSR"], ["SPARSE_CSR", "DENSE"]], ids="".join)
def test_sparse_numbers_are_those_that_are_stored_dense(kind: str, blocks: str, format: list[str], plugins: Any) -> None:
    type, scales = TYPES[kind]
    matrix = dense(0 if type is TensorType.UINT8 else -7)
    if type is not TensorType.INT4:
        matrix = matrix.astype({"FLOAT16": np.float16, "UINT8": np.uint8, "INT16": np.int16}.get(type.name, np.int8))
    map, lengths = BLOCKS[blocks]
    values, sparsity = sparsify(matrix, format, block_map=map, block_size=lengths)
    out = Spec("float32", matrix.shape)
    sparse = one_op_model("DEQUANTIZE", [Spec(type, matrix.shape, data=values, sparsity=sparsity, **scales)], [out], version=3)
    plain = one_op_model("DEQUANTIZE", [Spec(type, matrix.shape, data=matrix, **scales)], [out], version=3)
    [found], [wanted] = (run_op(model, plugins=plugins) for model in (sparse, plain))
    assert wanted.any()
    np.testing.assert_array_equal(found, wanted)


class _Halves(SimpleDelegate):
    """A delegate that is handed float16 constants directly, and takes nothing."""

    name = "halves"
    float16_constants = True

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[TensorType] = []

    def is_node_supported(self, context: DelegateContext, node: Node) -> bool | str:
        self.seen += [tensor.type for tensor in node.inputs if tensor is not None]
        return "it only looks"


@pytest.mark.parametrize("is_sparse", [True, False])
def test_a_delegate_with_float16_kernels_is_not_handed_halves_that_are_stored_sparse(is_sparse: bool) -> None:
    matrix = np.eye(4, dtype=np.float16)
    values, sparsity = sparsify(matrix)
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x, wide, y = (graph.add_tensor(name, "float32", [4, 4]) for name in "xwy")
    stored = {"data": values, "sparsity": sparsity} if is_sparse else {"data": matrix}
    graph.add_operator("DEQUANTIZE", [graph.add_tensor("halves", "float16", [4, 4], **stored)], [wide])
    graph.add_operator("MUL", [x, wide], [y])
    graph.set_inputs(x)
    graph.set_outputs(y)
    delegate = _Halves()
    Interpreter(model_content=builder.to_bytes(), experimental_delegates=[delegate])
    assert (TensorType.FLOAT32 in delegate.seen[1:]) is is_sparse
