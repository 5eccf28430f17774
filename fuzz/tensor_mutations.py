"""Mutations of tensors: shapes, types, quantization, sparsity, and the values of constants."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzz import edge_values
from fuzz.choices import Choices
from fuzz.random_parts import flip_field, refit, some_constant, some_subgraph, some_tensor
from oplet.schema import tables
from oplet.schema.enums import TensorType

__all__ = ["MUTATIONS"]


def _tensor_field(choices: Choices, root: tables.Model) -> None:
    flip_field(choices, some_tensor(choices, root))


def _shape(choices: Choices, root: tables.Model) -> None:
    tensor = some_tensor(choices, root)
    tensor.shape = edge_values.vector_value(choices, np.dtype("<i4"), tensor.shape)
    if choices.chance(70):
        refit(choices, root, tensor)


def _small_shape(choices: Choices, root: tables.Model) -> None:
    """Set a shape that fits into memory but is not what the node expects."""
    tensor = some_tensor(choices, root)
    dims = [] if tensor.shape is None else tensor.shape.tolist()
    kind = choices.below(5)
    if kind == 0:
        dims = [choices.choice((0, 1, 2, 3, 4, 5)) for _ in range(choices.below(7))]
    elif kind == 1 and dims:
        dims[choices.below(len(dims))] = choices.choice((0, 1, 2, 3, 5, 8, 17))
    elif kind == 2:
        dims.insert(choices.below(len(dims) + 1), choices.choice((0, 1, 2)))
    elif kind == 3 and dims:
        del dims[choices.below(len(dims))]
    else:
        dims = dims[::-1]
    tensor.shape = np.array(dims, np.int32)
    refit(choices, root, tensor)


def _type(choices: Choices, root: tables.Model) -> None:
    tensor = some_tensor(choices, root)
    tensor.type = choices.choice(list(TensorType))
    if choices.chance(90):
        refit(choices, root, tensor)


def _same_type(choices: Choices, root: tables.Model) -> None:
    """Change the type of all tensors that have the type of one, so that checks of equal types pass."""
    old, new = some_tensor(choices, root).type, choices.choice(list(TensorType))
    for subgraph in root.subgraphs or []:
        for tensor in subgraph.tensors or []:
            if tensor.type == old:
                tensor.type = new
                refit(choices, root, tensor)


def _quantization(choices: Choices, root: tables.Model) -> None:
    tensor = some_tensor(choices, root)
    quantization = tensor.quantization = tensor.quantization or tables.QuantizationParameters()
    kind = choices.below(9)
    if kind == 0:
        tensor.quantization = None
    elif kind <= 2:
        quantization.scale = edge_values.vector_value(choices, np.dtype("<f4"), quantization.scale)
    elif kind == 3:
        quantization.zero_point = edge_values.vector_value(choices, np.dtype("<i8"), quantization.zero_point)
    elif kind == 4:
        quantization.quantized_dimension = edge_values.int_value(choices, -(2**31), 2**31 - 1)
    elif kind == 5:
        dims = [1] if tensor.shape is None or not tensor.shape.size else tensor.shape.tolist()
        axis = choices.below(len(dims))
        count = min(max(dims[axis], 0), 1000)
        quantization.quantized_dimension = axis
        quantization.scale = np.full(count, choices.choice((0.5, 1.0, 1e-9, 1e9)), np.float32)
        quantization.zero_point = np.full(count, choices.choice((0, 0, 1, -128)), np.int64)
    elif kind == 6:
        quantization.scale = np.array([edge_values.float_value(choices)], np.float32)
        quantization.zero_point = np.array([edge_values.int_value(choices, -(2**63), 2**63 - 1)], np.int64)
    elif kind == 7:
        quantization.scale = np.array([abs(edge_values.float_value(choices)) or 1.0], np.float32)
        quantization.zero_point = np.array([choices.below(200) - 100], np.int64)
    else:
        flip_field(choices, quantization)


def _all_quantized(choices: Choices, root: tables.Model) -> None:
    """Give all tensors an integer type and the same scale, so that quantized kernels run."""
    type = choices.choice((TensorType.INT8, TensorType.UINT8, TensorType.INT16, TensorType.INT4, TensorType.INT32))
    scale = np.array([choices.choice((0.1, 1.0, 1e-6, 1e6))], np.float32)
    for subgraph in root.subgraphs or []:
        for tensor in subgraph.tensors or []:
            if tensor.type == TensorType.FLOAT32 and choices.chance(85):
                tensor.type = type
                tensor.quantization = tables.QuantizationParameters(scale=scale, zero_point=np.zeros(1, np.int64))
                refit(choices, root, tensor)


def _sparsity(choices: Choices, root: tables.Model) -> None:
    found = [t for s in root.subgraphs or [] for t in s.tensors or [] if t.sparsity is not None]
    tensor = choices.choice(found) if found else some_tensor(choices, root)
    if tensor.sparsity is None:
        rank = 0 if tensor.shape is None else tensor.shape.size
        dims = [] if tensor.shape is None else tensor.shape.tolist()
        tensor.sparsity = tables.SparsityParameters(
            traversal_order=np.arange(rank, dtype=np.int32),
            dim_metadata=[tables.DimensionMetadata(dense_size=dim) for dim in dims],
        )
    flip_field(choices, tensor.sparsity)


def _constant_values(choices: Choices, root: tables.Model) -> None:
    """Change values of a constant: axes, permutations, sizes, indices, weights."""
    found = some_constant(choices, root)
    if found is None:
        return
    tensor, buffer = found
    data = np.array(buffer.data, np.uint8)
    dtype = _DTYPES.get(tensor.type)
    if dtype is None or data.size < dtype.itemsize:
        buffer.data = edge_values.vector_value(choices, data.dtype, data)
        return
    array = data[: data.size // dtype.itemsize * dtype.itemsize].view(dtype)
    for _ in range(1 + choices.below(3)):
        at = choices.below(array.size)
        if dtype.kind in "iu" and choices.chance(60):
            info = np.iinfo(dtype)
            array[at] = min(max(edge_values.small_int(choices), info.min), info.max)
        else:
            edge_values.fill_array(choices, array[at : at + 1])
    buffer.data = data


_DTYPES: dict[TensorType, np.dtype[Any]] = {
    TensorType.FLOAT32: np.dtype("<f4"), TensorType.FLOAT16: np.dtype("<f2"), TensorType.INT32: np.dtype("<i4"),
    TensorType.UINT8: np.dtype("u1"), TensorType.INT64: np.dtype("<i8"), TensorType.BOOL: np.dtype("?"),
    TensorType.INT16: np.dtype("<i2"), TensorType.INT8: np.dtype("i1"), TensorType.FLOAT64: np.dtype("<f8"),
    TensorType.UINT64: np.dtype("<u8"), TensorType.UINT32: np.dtype("<u4"), TensorType.UINT16: np.dtype("<u2"),
    TensorType.COMPLEX64: np.dtype("<c8"), TensorType.STRING: np.dtype("<i4"),
}  # fmt: skip


def _buffer_bytes(choices: Choices, root: tables.Model) -> None:
    buffers = root.buffers or ()
    if not buffers:
        return
    buffer = choices.choice(buffers)
    kind = choices.below(5)
    if kind == 0:
        buffer.offset = edge_values.int_value(choices, 0, 2**64 - 1)
        buffer.size = edge_values.int_value(choices, 0, 2**64 - 1)
        buffer.data = None
    elif kind == 1:
        buffer.data = None
    elif kind == 2 and buffer.data is not None:
        buffer.data = buffer.data[: choices.below(buffer.data.size + 1)]
    else:
        buffer.data = np.frombuffer(choices.raw(choices.choice((1, 4, 16, 100))), np.uint8)


def _share_buffer(choices: Choices, root: tables.Model) -> None:
    some_tensor(choices, root).buffer = choices.below(len(root.buffers or []) + 1)


def _constant_to_input(choices: Choices, root: tables.Model) -> None:
    """Turn a constant into an input: what kernels check in prepare must then be checked in invoke."""
    for subgraph in root.subgraphs or []:
        tensors = subgraph.tensors or []
        constants = [i for i, tensor in enumerate(tensors) if tensor.buffer]
        if constants and choices.chance(70):
            index = choices.choice(constants)
            tensors[index].buffer = 0
            inputs = [] if subgraph.inputs is None else subgraph.inputs.tolist()
            subgraph.inputs = np.array([*inputs, index], np.int32)


def _variable(choices: Choices, root: tables.Model) -> None:
    tensor = some_tensor(choices, root)
    tensor.is_variable = not tensor.is_variable


def _input_to_constant(choices: Choices, root: tables.Model) -> None:
    """Turn an input into a constant, so that nodes are constant-folded and planned for its values."""
    subgraph = some_subgraph(choices, root)
    tensors = subgraph.tensors or []
    inputs = [] if subgraph.inputs is None else [index for index in subgraph.inputs.tolist() if 0 <= index < len(tensors)]
    if not inputs:
        return
    index = choices.choice(inputs)
    buffers = root.buffers = list(root.buffers or [tables.Buffer()])
    buffers.append(tables.Buffer(data=np.frombuffer(choices.raw(16), np.uint8)))
    tensors[index].buffer = len(buffers) - 1
    refit(choices, root, tensors[index])
    if choices.chance(80) and subgraph.inputs is not None:
        subgraph.inputs = subgraph.inputs[subgraph.inputs != index]


def _free_dims(choices: Choices, root: tables.Model) -> None:
    """Set a shape signature with free dimensions, which may contradict the shape."""
    tensor = some_tensor(choices, root)
    dims = [] if tensor.shape is None else tensor.shape.tolist()
    tensor.shape_signature = np.array([-1 if choices.chance(50) else dim for dim in dims], np.int32)
    if choices.chance(15):
        tensor.shape_signature = edge_values.vector_value(choices, np.dtype("<i4"), tensor.shape_signature)
    if choices.chance(10):
        tensor.shape = np.array([-1 if choices.chance(40) else dim for dim in dims], np.int32)
    tensor.has_rank = choices.chance(80)


def _one_buffer(choices: Choices, root: tables.Model) -> None:
    """Let two constants share a buffer, though their shapes and types may differ."""
    first, second = some_constant(choices, root), some_constant(choices, root)
    if first is None or second is None:
        return
    second[0].buffer = first[0].buffer
    if choices.chance(60):
        second[0].type, second[0].shape = first[0].type, first[0].shape
    elif choices.chance(50):
        refit(choices, root, second[0])


def _odd_scales(choices: Choices, root: tables.Model) -> None:
    """Set per-channel scales of which some are zero, negative or not finite."""
    tensor = some_tensor(choices, root)
    dims = [1] if tensor.shape is None or not tensor.shape.size else tensor.shape.tolist()
    axis = choices.below(len(dims))
    count = min(max(dims[axis], 1), 1000) if choices.chance(70) else 1
    scales = np.full(count, _scale(choices), np.float32)
    for _ in range(1 + choices.below(2)):
        scales[choices.below(count)] = choices.choice((0.0, -0.5, float("nan"), float("inf"), 1e-45, 3e38, _scale(choices)))
    points = np.full(count if choices.chance(80) else 1, choices.choice((0, 0, 0, 3, -128, 200, 2**31, -(2**40))), np.int64)
    tensor.quantization = tables.QuantizationParameters(scale=scales, zero_point=points, quantized_dimension=axis)
    if choices.chance(50):
        tensor.type = choices.choice(_QUANTIZED)
        refit(choices, root, tensor)


_QUANTIZED = (TensorType.INT8, TensorType.UINT8, TensorType.INT16, TensorType.INT4, TensorType.INT2, TensorType.INT32)


def _scale(choices: Choices) -> float:
    """A plausible scale."""
    return choices.choice((0.1, 0.5, 1.0, 0.003, 1e-6))


def _blockwise(choices: Choices, root: tables.Model) -> None:
    """Quantize a constant blockwise, with a tensor of scales."""
    subgraph = some_subgraph(choices, root)
    tensors = subgraph.tensors or []
    held = [tensor for tensor in tensors if tensor.buffer]
    if not held:
        return
    tensor = choices.choice(held)
    dims = [] if tensor.shape is None else [max(dim, 0) for dim in tensor.shape.tolist()]
    if len(tensors) > 2 and choices.chance(25):
        scales = choices.below(len(tensors))
    else:
        block = choices.choice((1, 2, 4, 32, max(dims, default=1) or 1))
        shape = [*dims[:-1], max(dims[-1] // block, 1)] if dims else []
        if int(np.prod(shape, dtype=object)) > 4096:
            return
        kind = choices.choice((TensorType.FLOAT32, TensorType.FLOAT16, TensorType.FLOAT16, TensorType.INT8))
        made = tables.Tensor(name="scales", shape=np.array(shape, np.int32), type=kind)
        buffers = root.buffers = list(root.buffers or [tables.Buffer()])
        buffers.append(tables.Buffer(data=np.frombuffer(choices.raw(8), np.uint8)))
        made.buffer = len(buffers) - 1
        refit(choices, root, made)
        subgraph.tensors = [*tensors, made]
        scales = len(tensors)
    details = tables.BlockwiseQuantization(scales=scales, zero_points=choices.choice((-1, -1, 0, scales)))
    details.block_size = choices.choice((1, 2, 4, 32, 0, -1, max(dims, default=1)))
    tensor.quantization = tables.QuantizationParameters(details=details, quantized_dimension=choices.below(3))
    tensor.type = choices.choice((TensorType.INT4, TensorType.INT8, TensorType.INT2, tensor.type))
    refit(choices, root, tensor)


#: The mutations; repeated ones are chosen more often.
MUTATIONS = (
    *[_small_shape] * 5, *[_shape] * 3, *[_type] * 3, *[_same_type] * 2, *[_quantization] * 4, *[_all_quantized] * 1,
    *[_constant_values] * 6, *[_constant_to_input] * 4, *[_buffer_bytes] * 2, *[_share_buffer] * 1, *[_tensor_field] * 2,
    *[_variable] * 1, *[_sparsity] * 1, *[_input_to_constant] * 2, *[_free_dims] * 2, *[_one_buffer] * 1, *[_odd_scales] * 3,
    *[_blockwise] * 1,
)  # fmt: skip
