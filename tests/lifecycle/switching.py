"""Any model with its constants made to follow from the length of an input: what kernels keep of constants, they must give up then."""

from __future__ import annotations

from typing import Any

import numpy as np

from oplet import Model, ModelBuilder, TensorType
from oplet.model.builders.model_builder import SubgraphBuilder
from oplet.ops.tensor import numpy_dtype
from oplet.schema import tables
from oplet.schema.options import GatherOptions, MaximumMinimumOptions, ShapeOptions, StridedSliceOptions, SubOptions

__all__ = ["switched"]

_TYPES = {
    TensorType.FLOAT32, TensorType.FLOAT16, TensorType.INT8, TensorType.UINT8, TensorType.INT16, TensorType.INT32, TensorType.INT64,
    TensorType.BOOL,
}  # fmt: skip


def switched(content: bytes) -> tuple[bytes, int] | None:
    """The model with one more input, of one dimension: its constants are the file's where its length is 1, and others from 2 on.

    Returns:
        The model and that input's index; None if it has no constants to be changed.
    """
    builder = ModelBuilder.from_model(Model.from_bytes(content), minimum_runtime=False)
    graph = builder.subgraphs[0]
    table = graph.table
    operators: list[tables.Operator] = table.operators or []
    fixed = _fixed(table, operators)
    chosen = [(index, value) for index in fixed if (value := _value(builder, table.tensors[index])) is not None]
    if not chosen:
        return None
    before = len(operators)
    switch = graph.add_tensor("switch", "float32", [-1])
    number = _number(graph, switch)
    for index, value in chosen:
        tensor = table.tensors[index]
        both = np.stack([value, np.roll(value.reshape(-1), 1).reshape(value.shape)])
        stacked = graph.add_tensor("both", tensor.type, both.shape, data=both)
        graph._tensors[stacked].quantization = _one_scale(tensor.quantization)
        tensor.buffer = 0
        graph.add_operator("GATHER", [stacked, number], [index], GatherOptions(axis=0))
    operators[:] = operators[before:] + operators[:before]
    table.inputs = np.append([] if table.inputs is None else table.inputs, switch).astype(np.int32)
    builder.root.signature_defs = None
    return builder.to_bytes(), switch


def _fixed(table: tables.SubGraph, operators: list[tables.Operator]) -> list[int]:
    """The tensors that nodes read and nobody writes."""
    written = {int(i) for operator in operators for i in (() if operator.outputs is None else operator.outputs)}
    outside = {int(i) for side in (table.inputs, table.outputs) for i in (() if side is None else side)}
    read = (int(i) for operator in operators for i in (() if operator.inputs is None else operator.inputs))
    return [i for i in dict.fromkeys(read) if i >= 0 and i not in written | outside]


def _value(builder: ModelBuilder, tensor: tables.Tensor) -> Any:
    """A constant's value if it is one of many numbers that mean no axis or shape."""
    data = (builder.root.buffers or [])[tensor.buffer].data if tensor.buffer else None
    if data is None or tensor.type not in _TYPES or tensor.sparsity is not None or tensor.is_variable:
        return None
    if tensor.quantization is not None and tensor.quantization.details is not None:
        return None
    shape = () if tensor.shape is None else tuple(tensor.shape.tolist())
    whole = tensor.type in (TensorType.INT32, TensorType.INT64)
    scaled = tensor.quantization is not None and tensor.quantization.scale is not None and len(tensor.quantization.scale)
    if not 2 <= np.prod(shape) <= 1 << 16 or (whole and not scaled and np.prod(shape) <= 8):
        return None
    array = np.frombuffer(bytes(data), numpy_dtype(tensor.type))
    return array.reshape(shape) if array.size == np.prod(shape) else None


def _one_scale(given: tables.QuantizationParameters | None) -> tables.QuantizationParameters | None:
    """GATHER wants its output's scale, of which it looks at the first."""
    return given if given is None or given.scale is None or len(given.scale) < 2 else None


def _number(graph: SubgraphBuilder, switch: int) -> int:
    """0 or 1, as the input's length has it; all of it is folded."""

    def constant(*value: int, scalar: bool = False) -> int:
        return graph.add_tensor(
            "c", "int32", [] if scalar else [len(value)], data=np.array(value[0] if scalar else value, np.int32)
        )

    shape = graph.add_tensor("shape", "int32", [1])
    length, less, number = (graph.add_tensor(name, "int32", []) for name in ("length", "less", "number"))
    graph.add_operator("SHAPE", [switch], [shape], ShapeOptions(out_type=TensorType.INT32))
    graph.add_operator(
        "STRIDED_SLICE", [shape, constant(0), constant(1), constant(1)], [length], StridedSliceOptions(shrink_axis_mask=1)
    )
    graph.add_operator("SUB", [length, constant(1, scalar=True)], [less], SubOptions())
    graph.add_operator("MINIMUM", [less, constant(1, scalar=True)], [number], MaximumMinimumOptions())
    return number
