"""Constants that are stored sparse stay with oplet unless a DENSIFY makes them dense: XNNPACK reads past their end.

TensorFlow's converter leaves the DENSIFY out where the blocks are those that LiteRT's own FULLY_CONNECTED knows: four floats of a row, or
sixteen int8.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oplet import BuiltinOperator, Interpreter, ModelBuilder, Node, Tensor, TensorType, load_delegate
from oplet.builder import sparsify
from oplet.ops.tensor import Allocation, numpy_dtype
from oplet.schema.options import FullyConnectedOptions
from oplet_litert_delegate.claims import refuses
from oplet_testing import Spec, invoke, one_op_model

F32 = np.float32
ROWS, DEPTH = 32, 64
#: By name, the dimensions in blocks and the blocks' lengths.
BLOCKS: dict[str, tuple[list[int], list[int]]] = {
    "none": ([], []),
    "1x4": ([1], [4]),
    "1x16": ([1], [16]),
    "4x1": ([0], [4]),
    "2x4": ([0, 1], [2, 4]),
}
each_block = pytest.mark.parametrize("blocks", BLOCKS)
TYPES = [TensorType.FLOAT32, TensorType.FLOAT16, TensorType.INT8, TensorType.UINT8, TensorType.INT16, TensorType.INT32]


def dense(dtype: Any) -> Any:
    """A matrix that is mostly zero, in blocks of 4 x 16."""
    random = np.random.default_rng(3)
    values = np.round(random.uniform(-50, 50, (ROWS, DEPTH)))
    values[random.uniform(size=(ROWS // 4, DEPTH // 16)).repeat(4, 0).repeat(16, 1) < 0.7] = 0
    return values.astype(dtype)


def stored(dtype: Any, blocks: str, **more: Any) -> Spec:
    map, lengths = BLOCKS[blocks]
    values, sparsity = sparsify(dense(dtype), ["DENSE", "SPARSE_CSR"], block_map=map, block_size=lengths)
    return Spec(dtype, [ROWS, DEPTH], data=values, sparsity=sparsity, **more)


def layer(blocks: str, dtype: Any) -> tuple[bytes, bytes]:
    """A FULLY_CONNECTED of floats with sparse weights, and one with the same weights stored dense."""
    scale = {} if dtype == "float32" else {"scale": 0.02, "zero_point": 0}
    x, out = Spec(F32, [2, DEPTH]), Spec(F32, [2, ROWS])
    each = stored(dtype, blocks, **scale), Spec(dtype, [ROWS, DEPTH], data=dense(dtype), **scale)
    sparse, plain = (one_op_model("FULLY_CONNECTED", [x, w, None], [out], FullyConnectedOptions(), version=8) for w in each)
    return sparse, plain


@each_block
@pytest.mark.parametrize("xnnpack", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_a_layer_with_sparse_weights_is_oplet_s_and_right(dtype: str, xnnpack: int, blocks: str) -> None:
    sparse, plain = layer(blocks, dtype)
    x = np.random.default_rng(4).uniform(-1, 1, (2, DEPTH)).astype(F32)
    interpreter = Interpreter(model_content=sparse, experimental_delegates=[load_delegate("litert", {"xnnpack": xnnpack})])
    interpreter.allocate_tensors()
    [report] = interpreter.delegation_reports()
    assert report.partitions == []
    assert "is stored sparse, and LiteRT may read it as if it were dense" in report.unsupported[0]
    np.testing.assert_allclose(invoke(interpreter, x)[0], invoke(Interpreter(model_content=plain), x)[0], rtol=1e-5, atol=1e-5)


@each_block
def test_what_a_densify_makes_dense_is_litert_s(blocks: str) -> None:
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    spec = stored("float32", blocks)
    x = graph.add_tensor("x", F32, [2, DEPTH])
    packed = graph.add_tensor("w", F32, [ROWS, DEPTH], data=spec.data, sparsity=spec.sparsity)
    weights, y = graph.add_tensor("dense", F32, [ROWS, DEPTH]), graph.add_tensor("y", F32, [2, ROWS])
    graph.add_operator("DENSIFY", [packed], [weights])
    graph.add_operator("FULLY_CONNECTED", [x, weights, None], [y], FullyConnectedOptions())
    graph.set_inputs(x)
    graph.set_outputs(y)
    interpreter = Interpreter(model_content=builder.to_bytes(), experimental_delegates=[load_delegate("litert")])
    values = np.random.default_rng(4).uniform(-1, 1, (2, DEPTH)).astype(F32)
    np.testing.assert_allclose(invoke(interpreter, values)[0], values @ dense(F32).T, rtol=1e-5, atol=1e-4)
    assert [each.op for each in interpreter.explain()] == ["litert"]


@pytest.mark.parametrize("type", TYPES, ids=lambda type: type.name)
@each_block
def test_no_operator_but_densify_gets_a_sparse_constant(blocks: str, type: TensorType) -> None:
    """Asked directly, whether or not a kernel of oplet's reads such a node."""
    spec = stored(numpy_dtype(type), blocks)
    packed = Tensor(1, "w", type, (ROWS, DEPTH), sparsity=spec.sparsity, allocation=Allocation.CONSTANT)
    packed.set_loader(lambda: spec.data)
    x, y = Tensor(0, "x", TensorType.FLOAT32, (2, DEPTH)), Tensor(2, "y", TensorType.FLOAT32, (2, ROWS))
    taken = set()
    for op in BuiltinOperator:
        for inputs in ([packed], [x, packed], [packed, x], [x, x, packed]):
            node = Node(0, op, op.name, 1, inputs, [y], None)
            node.registration = object()  # type: ignore[assignment]  # as after its kernel checked it
            if not refuses(node, ()):
                taken.add(op)
    assert taken <= {BuiltinOperator.DENSIFY}
