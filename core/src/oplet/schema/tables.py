"""The tables of a model file, in the order of their dependencies: Model, the root, is the last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from oplet.schema.enums import BuiltinOperator, CustomOptionsFormat, DimensionType, TensorType
from oplet.schema.options import BuiltinOptions
from oplet.schema.table import Table, boolean, enum, int8, int32, string, table, tables, uint32, uint64, union, vector

if TYPE_CHECKING:
    from numpy.typing import NDArray


class CustomQuantization(Table):
    """Quantization in a format of a tool's own."""

    custom: NDArray[np.uint8] | None = vector(0, "uint8")


class BlockwiseQuantization(Table):
    """One scale per block of `block_size` values; `scales` and `zero_points` are tensor indices."""

    scales: int = int32(0)
    zero_points: int = int32(1)
    block_size: int = int32(2)


class MultiAxisQuantization(Table):
    """Quantization along several axes (`quantized_dimensions`); `scales` and `zero_points` are the indices of tensors with them."""

    scales: int = int32(0)
    zero_points: int = int32(1)
    block_size: int = int32(2)
    quantized_dimensions: NDArray[np.int32] | None = vector(3, "int32")


#: Union QuantizationDetails: table class by member number.
QuantizationDetails: dict[int, type[Table]] = {1: CustomQuantization, 2: BlockwiseQuantization, 3: MultiAxisQuantization}


class QuantizationParameters(Table):
    """real = scale * (value - zero_point), per tensor (one scale) or along `quantized_dimension`."""

    min: NDArray[np.float32] | None = vector(0, "float32")
    max: NDArray[np.float32] | None = vector(1, "float32")
    scale: NDArray[np.float32] | None = vector(2, "float32")
    zero_point: NDArray[np.int64] | None = vector(3, "int64")
    details: Table | None = union(5, QuantizationDetails)
    quantized_dimension: int = int32(6)


class Int32Vector(Table):
    """Indices of a sparse tensor as int32."""

    values: NDArray[np.int32] | None = vector(0, "int32")


class Uint16Vector(Table):
    """Indices of a sparse tensor as uint16."""

    values: NDArray[np.uint16] | None = vector(0, "uint16")


class Uint8Vector(Table):
    """Indices of a sparse tensor as uint8."""

    values: NDArray[np.uint8] | None = vector(0, "uint8")


#: Union SparseIndexVector: table class by member number.
SparseIndexVector: dict[int, type[Table]] = {1: Int32Vector, 2: Uint16Vector, 3: Uint8Vector}


class DimensionMetadata(Table):
    """How one dimension of a sparse tensor is stored: dense, or compressed rows (segments and indices)."""

    format: DimensionType = enum(0, DimensionType)
    dense_size: int = int32(1)
    array_segments: Table | None = union(3, SparseIndexVector)
    array_indices: Table | None = union(5, SparseIndexVector)


class SparsityParameters(Table):
    """The order in which dimensions are traversed, the blocked ones, and how each is stored."""

    traversal_order: NDArray[np.int32] | None = vector(0, "int32")
    block_map: NDArray[np.int32] | None = vector(1, "int32")
    dim_metadata: list[DimensionMetadata] | None = tables(2, DimensionMetadata)


class VariantSubType(Table):
    """Shape and element type of the tensors in a variant tensor."""

    shape: NDArray[np.int32] | None = vector(0, "int32")
    type: TensorType = enum(1, TensorType)
    has_rank: bool = boolean(2)


class Tensor(Table):
    """One tensor of a subgraph; `buffer` 0 means that it has no constant data."""

    shape: NDArray[np.int32] | None = vector(0, "int32")
    type: TensorType = enum(1, TensorType)
    buffer: int = uint32(2)
    name: str | None = string(3)
    quantization: QuantizationParameters | None = table(4, QuantizationParameters)
    is_variable: bool = boolean(5)
    sparsity: SparsityParameters | None = table(6, SparsityParameters)
    shape_signature: NDArray[np.int32] | None = vector(7, "int32")
    has_rank: bool = boolean(8)
    variant_tensors: list[VariantSubType] | None = tables(9, VariantSubType)
    external_buffer: int = uint32(10)


class OperatorCode(Table):
    """An operator and its version; operators refer to it by index."""

    deprecated_builtin_code: int = int8(0)
    custom_code: str | None = string(1)
    version: int = int32(2, 1)
    builtin_code: BuiltinOperator = enum(3, BuiltinOperator, width="int32")


def operator_code(code: OperatorCode) -> int:
    """Return the number of the built-in operator of an operator code; files before schema 3a have only the deprecated one-byte
    field.
    """
    return max(int(code.builtin_code), int(code.deprecated_builtin_code))


def _builtin_options_2() -> Mapping[int, type[Table]]:
    from oplet.schema.stablehlo_options import BuiltinOptions2  # here, as few models have any

    return BuiltinOptions2


class Operator(Table):
    """One node: its operator code, tensors (-1 for an omitted input) and options."""

    opcode_index: int = uint32(0)
    inputs: NDArray[np.int32] | None = vector(1, "int32")
    outputs: NDArray[np.int32] | None = vector(2, "int32")
    builtin_options: Table | None = union(4, BuiltinOptions)
    custom_options: NDArray[np.uint8] | None = vector(5, "uint8")
    custom_options_format: CustomOptionsFormat = enum(6, CustomOptionsFormat)
    mutating_variable_inputs: NDArray[np.bool_] | None = vector(7, "bool")
    intermediates: NDArray[np.int32] | None = vector(8, "int32")
    large_custom_options_offset: int = uint64(9)
    large_custom_options_size: int = uint64(10)
    builtin_options_2: Table | None = union(12, _builtin_options_2)
    debug_metadata_index: int = int32(13, -1)


class SubGraph(Table):
    """Tensors and operators in execution order; the first subgraph is the one that `invoke` runs."""

    tensors: list[Tensor] | None = tables(0, Tensor)
    inputs: NDArray[np.int32] | None = vector(1, "int32")
    outputs: NDArray[np.int32] | None = vector(2, "int32")
    operators: list[Operator] | None = tables(3, Operator)
    name: str | None = string(4)
    debug_metadata_index: int = int32(5, -1)


class Buffer(Table):
    """Constant data, inside the FlatBuffer or at `offset` of the file."""

    data: NDArray[np.uint8] | None = vector(0, "uint8", shared=True)
    offset: int = uint64(1)
    size: int = uint64(2)


class ExternalBufferGroup(Table):
    """A file that holds external buffers; `name` is relative to the model."""

    name: str | None = string(0)


class ExternalBuffer(Table):
    """Constant data in the file of an external buffer group: `length` bytes at `offset`."""

    id: int = uint32(0)
    group: int = uint32(1)
    offset: int = uint64(2)
    length: int = uint64(3)
    packing: str | None = string(4)


class Metadata(Table):
    """A named entry of metadata: its name and the index of its buffer."""

    name: str | None = string(0)
    buffer: int = uint32(1)


class TensorMap(Table):
    """A signature's name for an input or output, and the tensor's index."""

    name: str | None = string(0)
    tensor_index: int = uint32(1)


class SignatureDef(Table):
    """A named way of calling a subgraph."""

    inputs: list[TensorMap] | None = tables(0, TensorMap)
    outputs: list[TensorMap] | None = tables(1, TensorMap)
    signature_key: str | None = string(2)
    deprecated_tag: str | None = string(3)  # deprecated
    subgraph_index: int = uint32(4)


class Model(Table):
    """The root table of a .tflite file."""

    version: int = uint32(0)
    operator_codes: list[OperatorCode] | None = tables(1, OperatorCode)
    subgraphs: list[SubGraph] | None = tables(2, SubGraph)
    description: str | None = string(3)
    buffers: list[Buffer] | None = tables(4, Buffer)
    metadata_buffer: NDArray[np.int32] | None = vector(5, "int32")
    metadata: list[Metadata] | None = tables(6, Metadata)
    signature_defs: list[SignatureDef] | None = tables(7, SignatureDef)
    external_buffer_groups: list[ExternalBufferGroup] | None = tables(8, ExternalBufferGroup)
    external_buffers: list[ExternalBuffer] | None = tables(9, ExternalBuffer)
