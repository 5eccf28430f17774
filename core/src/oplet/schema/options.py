"""Options tables of the built-in operators: the members of the union BuiltinOptions, in its order.

`since` names the op version that introduced a field; files written before it read the default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from oplet.schema.enums import (
    ActivationFunctionType,
    CombinerType,
    FullyConnectedOptionsWeightsFormat,
    LSHProjectionType,
    LSTMKernelType,
    MirrorPadMode,
    Padding,
    TensorType,
)
from oplet.schema.table import Table, boolean, enum, float32, int32, int64, string, uint32, union_members, vector

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Conv2DOptions(Table):
    padding: Padding = enum(0, Padding)
    stride_w: int = int32(1)
    stride_h: int = int32(2)
    fused_activation_function: ActivationFunctionType = enum(3, ActivationFunctionType)
    dilation_w_factor: int = int32(4, 1)
    dilation_h_factor: int = int32(5, 1)
    quantized_bias_type: TensorType = enum(6, TensorType, since=8)


class DepthwiseConv2DOptions(Table):
    padding: Padding = enum(0, Padding)
    stride_w: int = int32(1)
    stride_h: int = int32(2)
    depth_multiplier: int = int32(3)
    fused_activation_function: ActivationFunctionType = enum(4, ActivationFunctionType)
    dilation_w_factor: int = int32(5, 1, since=2)
    dilation_h_factor: int = int32(6, 1, since=2)


class ConcatEmbeddingsOptions(Table):
    num_channels: int = int32(0)
    num_columns_per_channel: NDArray[np.int32] | None = vector(1, "int32")
    embedding_dim_per_channel: NDArray[np.int32] | None = vector(2, "int32")


class LSHProjectionOptions(Table):
    type: LSHProjectionType = enum(0, LSHProjectionType)


class Pool2DOptions(Table):
    padding: Padding = enum(0, Padding)
    stride_w: int = int32(1)
    stride_h: int = int32(2)
    filter_width: int = int32(3)
    filter_height: int = int32(4)
    fused_activation_function: ActivationFunctionType = enum(5, ActivationFunctionType)


class SVDFOptions(Table):
    rank: int = int32(0)
    fused_activation_function: ActivationFunctionType = enum(1, ActivationFunctionType)
    asymmetric_quantize_inputs: bool = boolean(2, since=4)


class RNNOptions(Table):
    fused_activation_function: ActivationFunctionType = enum(0, ActivationFunctionType)
    asymmetric_quantize_inputs: bool = boolean(1, since=3)


class FullyConnectedOptions(Table):
    fused_activation_function: ActivationFunctionType = enum(0, ActivationFunctionType)
    weights_format: FullyConnectedOptionsWeightsFormat = enum(
        1, FullyConnectedOptionsWeightsFormat, FullyConnectedOptionsWeightsFormat.DEFAULT, since=2
    )
    keep_num_dims: bool = boolean(2, since=5)
    asymmetric_quantize_inputs: bool = boolean(3, since=7)
    quantized_bias_type: TensorType = enum(4, TensorType, since=11)


class SoftmaxOptions(Table):
    beta: float = float32(0)


class ConcatenationOptions(Table):
    axis: int = int32(0)
    fused_activation_function: ActivationFunctionType = enum(1, ActivationFunctionType)


class AddOptions(Table):
    fused_activation_function: ActivationFunctionType = enum(0, ActivationFunctionType)
    pot_scale_int16: bool = boolean(1, True, since=3)


class L2NormOptions(Table):
    fused_activation_function: ActivationFunctionType = enum(0, ActivationFunctionType)


class LocalResponseNormalizationOptions(Table):
    radius: int = int32(0)
    bias: float = float32(1)
    alpha: float = float32(2)
    beta: float = float32(3)


class LSTMOptions(Table):
    fused_activation_function: ActivationFunctionType = enum(0, ActivationFunctionType)
    cell_clip: float = float32(1)
    proj_clip: float = float32(2)
    kernel_type: LSTMKernelType = enum(3, LSTMKernelType, LSTMKernelType.FULL, since=2)
    asymmetric_quantize_inputs: bool = boolean(4, since=4)


class ResizeBilinearOptions(Table):
    new_height: int = int32(0)
    new_width: int = int32(1)
    align_corners: bool = boolean(2)
    half_pixel_centers: bool = boolean(3, since=3)


class CallOptions(Table):
    subgraph: int = uint32(0)


class ReshapeOptions(Table):
    new_shape: NDArray[np.int32] | None = vector(0, "int32")


class SkipGramOptions(Table):
    ngram_size: int = int32(0)
    max_skip_size: int = int32(1)
    include_all_ngrams: bool = boolean(2)


class SpaceToDepthOptions(Table):
    block_size: int = int32(0)


class EmbeddingLookupSparseOptions(Table):
    combiner: CombinerType = enum(0, CombinerType)


class MulOptions(Table):
    fused_activation_function: ActivationFunctionType = enum(0, ActivationFunctionType)


class PadOptions(Table):
    """Options of PAD: a table without fields."""


class GatherOptions(Table):
    axis: int = int32(0)
    batch_dims: int = int32(1, 0, since=5)


class BatchToSpaceNDOptions(Table):
    """Options of BATCH_TO_SPACE_ND: a table without fields."""


class SpaceToBatchNDOptions(Table):
    """Options of SPACE_TO_BATCH_ND: a table without fields."""


class TransposeOptions(Table):
    """Options of TRANSPOSE: a table without fields."""


class ReducerOptions(Table):
    keep_dims: bool = boolean(0)


class SubOptions(Table):
    fused_activation_function: ActivationFunctionType = enum(0, ActivationFunctionType)
    pot_scale_int16: bool = boolean(1, True, since=5)


class DivOptions(Table):
    fused_activation_function: ActivationFunctionType = enum(0, ActivationFunctionType)


class SqueezeOptions(Table):
    squeeze_dims: NDArray[np.int32] | None = vector(0, "int32")


class SequenceRNNOptions(Table):
    time_major: bool = boolean(0)
    fused_activation_function: ActivationFunctionType = enum(1, ActivationFunctionType)
    asymmetric_quantize_inputs: bool = boolean(2, since=3)


class StridedSliceOptions(Table):
    begin_mask: int = int32(0)
    end_mask: int = int32(1)
    ellipsis_mask: int = int32(2)
    new_axis_mask: int = int32(3)
    shrink_axis_mask: int = int32(4)
    offset: bool = boolean(5, since=8)


class ExpOptions(Table):
    """Options of EXP: a table without fields."""


class TopKV2Options(Table):
    """Options of TOPK_V2: a table without fields."""


class SplitOptions(Table):
    num_splits: int = int32(0)


class LogSoftmaxOptions(Table):
    """Options of LOG_SOFTMAX: a table without fields."""


class CastOptions(Table):
    in_data_type: TensorType = enum(0, TensorType)
    out_data_type: TensorType = enum(1, TensorType)


class DequantizeOptions(Table):
    """Options of DEQUANTIZE: a table without fields."""


class MaximumMinimumOptions(Table):
    """Options of MAXIMUM and MINIMUM: a table without fields."""


class ArgMaxOptions(Table):
    output_type: TensorType = enum(0, TensorType)


class LessOptions(Table):
    """Options of LESS: a table without fields."""


class NegOptions(Table):
    """Options of NEG: a table without fields."""


class PadV2Options(Table):
    """Options of PADV2: a table without fields."""


class GreaterOptions(Table):
    """Options of GREATER: a table without fields."""


class GreaterEqualOptions(Table):
    """Options of GREATER_EQUAL: a table without fields."""


class LessEqualOptions(Table):
    """Options of LESS_EQUAL: a table without fields."""


class SelectOptions(Table):
    """Options of SELECT: a table without fields."""


class SliceOptions(Table):
    """Options of SLICE: a table without fields."""


class TransposeConvOptions(Table):
    padding: Padding = enum(0, Padding)
    stride_w: int = int32(1)
    stride_h: int = int32(2)
    fused_activation_function: ActivationFunctionType = enum(3, ActivationFunctionType, ActivationFunctionType.NONE, since=4)
    quantized_bias_type: TensorType = enum(4, TensorType, since=5)


class SparseToDenseOptions(Table):
    validate_indices: bool = boolean(0)


class TileOptions(Table):
    """Options of TILE: a table without fields."""


class ExpandDimsOptions(Table):
    """Options of EXPAND_DIMS: a table without fields."""


class EqualOptions(Table):
    """Options of EQUAL: a table without fields."""


class NotEqualOptions(Table):
    """Options of NOT_EQUAL: a table without fields."""


class ShapeOptions(Table):
    out_type: TensorType = enum(0, TensorType)


class PowOptions(Table):
    """Options of POW: a table without fields."""


class ArgMinOptions(Table):
    output_type: TensorType = enum(0, TensorType)


class FakeQuantOptions(Table):
    min: float = float32(0)
    max: float = float32(1)
    num_bits: int = int32(2)
    narrow_range: bool = boolean(3, since=2)


class PackOptions(Table):
    values_count: int = int32(0)
    axis: int = int32(1)


class LogicalOrOptions(Table):
    """Options of LOGICAL_OR: a table without fields."""


class OneHotOptions(Table):
    axis: int = int32(0)


class LogicalAndOptions(Table):
    """Options of LOGICAL_AND: a table without fields."""


class LogicalNotOptions(Table):
    """Options of LOGICAL_NOT: a table without fields."""


class UnpackOptions(Table):
    num: int = int32(0)
    axis: int = int32(1)


class FloorDivOptions(Table):
    """Options of FLOOR_DIV: a table without fields."""


class SquareOptions(Table):
    """Options of SQUARE: a table without fields."""


class ZerosLikeOptions(Table):
    """Options of ZEROS_LIKE: a table without fields."""


class FillOptions(Table):
    """Options of FILL: a table without fields."""


class BidirectionalSequenceLSTMOptions(Table):
    fused_activation_function: ActivationFunctionType = enum(0, ActivationFunctionType)
    cell_clip: float = float32(1)
    proj_clip: float = float32(2)
    merge_outputs: bool = boolean(3)
    time_major: bool = boolean(4, True, since=2)
    asymmetric_quantize_inputs: bool = boolean(5, since=3)


class BidirectionalSequenceRNNOptions(Table):
    time_major: bool = boolean(0)
    fused_activation_function: ActivationFunctionType = enum(1, ActivationFunctionType)
    merge_outputs: bool = boolean(2)
    asymmetric_quantize_inputs: bool = boolean(3, since=3)


class UnidirectionalSequenceLSTMOptions(Table):
    fused_activation_function: ActivationFunctionType = enum(0, ActivationFunctionType)
    cell_clip: float = float32(1)
    proj_clip: float = float32(2)
    time_major: bool = boolean(3)
    asymmetric_quantize_inputs: bool = boolean(4, since=3)
    diagonal_recurrent_tensors: bool = boolean(5, since=4)


class FloorModOptions(Table):
    """Options of FLOOR_MOD: a table without fields."""


class RangeOptions(Table):
    """Options of RANGE: a table without fields."""


class ResizeNearestNeighborOptions(Table):
    align_corners: bool = boolean(0)
    half_pixel_centers: bool = boolean(1, since=3)


class LeakyReluOptions(Table):
    alpha: float = float32(0)


class SquaredDifferenceOptions(Table):
    """Options of SQUARED_DIFFERENCE: a table without fields."""


class MirrorPadOptions(Table):
    mode: MirrorPadMode = enum(0, MirrorPadMode)


class AbsOptions(Table):
    """Options of ABS: a table without fields."""


class SplitVOptions(Table):
    num_splits: int = int32(0)


class UniqueOptions(Table):
    idx_out_type: TensorType = enum(0, TensorType, TensorType.INT32)


class ReverseV2Options(Table):
    """Options of REVERSE_V2: a table without fields."""


class AddNOptions(Table):
    """Options of ADD_N: a table without fields."""


class GatherNdOptions(Table):
    """Options of GATHER_ND: a table without fields."""


class CosOptions(Table):
    """Options of COS: a table without fields."""


class WhereOptions(Table):
    """Options of WHERE: a table without fields."""


class RankOptions(Table):
    """Options of RANK: a table without fields."""


class ReverseSequenceOptions(Table):
    seq_dim: int = int32(0)
    batch_dim: int = int32(1, 0)


class MatrixDiagOptions(Table):
    """Options of MATRIX_DIAG: a table without fields."""


class QuantizeOptions(Table):
    """Options of QUANTIZE: a table without fields."""


class MatrixSetDiagOptions(Table):
    """Options of MATRIX_SET_DIAG: a table without fields."""


class HardSwishOptions(Table):
    """Options of HARD_SWISH: a table without fields."""


class IfOptions(Table):
    then_subgraph_index: int = int32(0)
    else_subgraph_index: int = int32(1)


class WhileOptions(Table):
    cond_subgraph_index: int = int32(0)
    body_subgraph_index: int = int32(1)


class DepthToSpaceOptions(Table):
    block_size: int = int32(0)


class NonMaxSuppressionV4Options(Table):
    """Options of NON_MAX_SUPPRESSION_V4: a table without fields."""


class NonMaxSuppressionV5Options(Table):
    """Options of NON_MAX_SUPPRESSION_V5: a table without fields."""


class ScatterNdOptions(Table):
    """Options of SCATTER_ND: a table without fields."""


class SelectV2Options(Table):
    """Options of SELECT_V2: a table without fields."""


class DensifyOptions(Table):
    """Options of DENSIFY: a table without fields."""


class SegmentSumOptions(Table):
    """Options of SEGMENT_SUM: a table without fields."""


class BatchMatMulOptions(Table):
    adj_x: bool = boolean(0)
    adj_y: bool = boolean(1)
    asymmetric_quantize_inputs: bool = boolean(2, since=4)


class CumsumOptions(Table):
    exclusive: bool = boolean(0)
    reverse: bool = boolean(1)


class CallOnceOptions(Table):
    init_subgraph_index: int = int32(0)


class BroadcastToOptions(Table):
    """Options of BROADCAST_TO: a table without fields."""


class Rfft2dOptions(Table):
    """Options of RFFT2D: a table without fields."""


class Conv3DOptions(Table):
    padding: Padding = enum(0, Padding)
    stride_d: int = int32(1)
    stride_w: int = int32(2)
    stride_h: int = int32(3)
    fused_activation_function: ActivationFunctionType = enum(4, ActivationFunctionType)
    dilation_d_factor: int = int32(5, 1)
    dilation_w_factor: int = int32(6, 1)
    dilation_h_factor: int = int32(7, 1)


class HashtableOptions(Table):
    table_id: int = int32(0)
    key_dtype: TensorType = enum(1, TensorType)
    value_dtype: TensorType = enum(2, TensorType)


class HashtableFindOptions(Table):
    """Options of HASHTABLE_FIND: a table without fields."""


class HashtableImportOptions(Table):
    """Options of HASHTABLE_IMPORT: a table without fields."""


class HashtableSizeOptions(Table):
    """Options of HASHTABLE_SIZE: a table without fields."""


class VarHandleOptions(Table):
    container: str | None = string(0)
    shared_name: str | None = string(1)


class ReadVariableOptions(Table):
    """Options of READ_VARIABLE: a table without fields."""


class AssignVariableOptions(Table):
    """Options of ASSIGN_VARIABLE: a table without fields."""


class RandomOptions(Table):
    seed: int = int64(0)
    seed2: int = int64(1)


class BucketizeOptions(Table):
    boundaries: NDArray[np.float32] | None = vector(0, "float32")


class GeluOptions(Table):
    approximate: bool = boolean(0)


class DynamicUpdateSliceOptions(Table):
    """Options of DYNAMIC_UPDATE_SLICE: a table without fields."""


class UnsortedSegmentProdOptions(Table):
    """Options of UNSORTED_SEGMENT_PROD: a table without fields."""


class UnsortedSegmentMaxOptions(Table):
    """Options of UNSORTED_SEGMENT_MAX: a table without fields."""


class UnsortedSegmentMinOptions(Table):
    """Options of UNSORTED_SEGMENT_MIN: a table without fields."""


class UnsortedSegmentSumOptions(Table):
    """Options of UNSORTED_SEGMENT_SUM: a table without fields."""


class ATan2Options(Table):
    """Options of ATAN2: a table without fields."""


class SignOptions(Table):
    """Options of SIGN: a table without fields."""


class BitcastOptions(Table):
    """Options of BITCAST: a table without fields."""


class BitwiseXorOptions(Table):
    """Options of BITWISE_XOR: a table without fields."""


class RightShiftOptions(Table):
    """Options of RIGHT_SHIFT: a table without fields."""


#: Union BuiltinOptions: table class by member number.
BuiltinOptions = union_members(globals())
