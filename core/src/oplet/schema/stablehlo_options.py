"""Options tables of the StableHLO operators and of the latest built-in ones: the members of the union BuiltinOptions2, in its order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from oplet.schema.enums import (
    CustomOptionsFormat,
    ReduceWindowFunction,
    RngAlgorithm,
    StablehloComparisonDirection,
    StablehloComparisonType,
    StablehloPrecisionConfig,
)
from oplet.schema.table import Table, boolean, enum, int32, int64, string, union_members, vector

if TYPE_CHECKING:
    from numpy.typing import NDArray


class StablehloConcatenateOptions(Table):
    dimension: int = int64(0)


class StablehloBroadcastInDimOptions(Table):
    broadcast_dimensions: NDArray[np.int64] | None = vector(0, "int64")


class StablehloSliceOptions(Table):
    start_indices: NDArray[np.int64] | None = vector(0, "int64")
    limit_indices: NDArray[np.int64] | None = vector(1, "int64")
    strides: NDArray[np.int64] | None = vector(2, "int64")


class StablehloConvolutionOptions(Table):
    window_strides: NDArray[np.int64] | None = vector(0, "int64")
    padding: NDArray[np.int64] | None = vector(1, "int64")
    lhs_dilation: NDArray[np.int64] | None = vector(2, "int64")
    rhs_dilation: NDArray[np.int64] | None = vector(3, "int64")
    window_reversal: NDArray[np.bool_] | None = vector(4, "bool")
    input_batch_dimension: int = int64(5)
    input_feature_dimension: int = int64(6)
    input_spatial_dimensions: NDArray[np.int64] | None = vector(7, "int64")
    kernel_input_feature_dimension: int = int64(8)
    kernel_output_feature_dimension: int = int64(9)
    kernel_spatial_dimensions: NDArray[np.int64] | None = vector(10, "int64")
    output_batch_dimension: int = int64(11)
    output_feature_dimension: int = int64(12)
    output_spatial_dimensions: NDArray[np.int64] | None = vector(13, "int64")
    feature_group_count: int = int64(14)
    batch_group_count: int = int64(15)
    precision_config: NDArray[np.uint32] | None = vector(16, "uint32", enum=StablehloPrecisionConfig)


class StablehloCustomCallOptions(Table):
    call_target_name: str | None = string(0)
    has_side_effect: bool = boolean(1)
    backend_config: str | None = string(2)
    api_version: int = int32(3)
    called_computations: NDArray[np.int32] | None = vector(4, "int32")
    custom_attributes: NDArray[np.uint8] | None = vector(5, "uint8")


class StablehloReduceOptions(Table):
    dimensions: NDArray[np.int64] | None = vector(0, "int64")
    body_subgraph_index: int = int32(1)


class StablehloScatterOptions(Table):
    indices_are_sorted: bool = boolean(0)
    update_window_dims: NDArray[np.int64] | None = vector(1, "int64")
    inserted_window_dims: NDArray[np.int64] | None = vector(2, "int64")
    scatter_dims_to_operand_dims: NDArray[np.int64] | None = vector(3, "int64")
    index_vector_dim: int = int64(4)
    unique_indices: bool = boolean(5)
    update_computation_subgraph_index: int = int32(6)


class StablehloCompareOptions(Table):
    comparison_direction: StablehloComparisonDirection = enum(0, StablehloComparisonDirection, width="uint32")
    compare_type: StablehloComparisonType = enum(1, StablehloComparisonType, width="uint32")


class StablehloDynamicSliceOptions(Table):
    slice_sizes: NDArray[np.int64] | None = vector(0, "int64")


class StablehloPadOptions(Table):
    edge_padding_low: NDArray[np.int64] | None = vector(0, "int64")
    edge_padding_high: NDArray[np.int64] | None = vector(1, "int64")
    interior_padding: NDArray[np.int64] | None = vector(2, "int64")


class StablehloIotaOptions(Table):
    iota_dimension: int = int64(0)


class StablehloDotGeneralOptions(Table):
    lhs_batching_dimensions: NDArray[np.int64] | None = vector(0, "int64")
    rhs_batching_dimensions: NDArray[np.int64] | None = vector(1, "int64")
    lhs_contracting_dimensions: NDArray[np.int64] | None = vector(2, "int64")
    rhs_contracting_dimensions: NDArray[np.int64] | None = vector(3, "int64")
    precision_config: NDArray[np.uint32] | None = vector(4, "uint32", enum=StablehloPrecisionConfig)


class StablehloReduceWindowOptions(Table):
    window_dimensions: NDArray[np.int64] | None = vector(0, "int64")
    window_strides: NDArray[np.int64] | None = vector(1, "int64")
    base_dilations: NDArray[np.int64] | None = vector(2, "int64")
    window_dilations: NDArray[np.int64] | None = vector(3, "int64")
    padding: NDArray[np.int64] | None = vector(4, "int64")
    body_subgraph_index: int = int32(5)


class StablehloSortOptions(Table):
    dimension: int = int64(0)
    is_stable: bool = boolean(1)
    comparator_subgraph_index: int = int32(2)


class StablehloWhileOptions(Table):
    cond_subgraph_index: int = int32(0)
    body_subgraph_index: int = int32(1)


class StablehloGatherOptions(Table):
    offset_dims: NDArray[np.int64] | None = vector(0, "int64")
    collapsed_slice_dims: NDArray[np.int64] | None = vector(1, "int64")
    start_index_map: NDArray[np.int64] | None = vector(2, "int64")
    index_vector_dim: int = int64(3)
    slice_sizes: NDArray[np.int64] | None = vector(4, "int64")
    indices_are_sorted: bool = boolean(5)


class StablehloTransposeOptions(Table):
    permutation: NDArray[np.int64] | None = vector(0, "int64")


class DilateOptions(Table): ...


class StablehloRngBitGeneratorOptions(Table):
    algorithm: RngAlgorithm = enum(0, RngAlgorithm)


class ReduceWindowOptions(Table):
    reduce_function: ReduceWindowFunction = enum(0, ReduceWindowFunction, width="int32")


class StableHLOCompositeOptions(Table):
    name: str | None = string(0)
    decomposition_subgraph_index: int = int32(1)
    composite_attributes: NDArray[np.uint8] | None = vector(2, "uint8")
    composite_attributes_format: CustomOptionsFormat = enum(3, CustomOptionsFormat)
    version: int = int32(4)


class StablehloShiftLeftOptions(Table): ...


class StablehloCaseOptions(Table):
    branch_subgraph_indices: NDArray[np.int32] | None = vector(0, "int32")


#: Union BuiltinOptions2: table class by member number.
BuiltinOptions2 = union_members(globals())
