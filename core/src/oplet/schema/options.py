"""Options tables of the built-in operators: the members of the union BuiltinOptions, in its order.

`since` names the op version that introduced a field; files written before it read the default. Half of the tables have no fields.
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


class PadOptions(Table): ...


class GatherOptions(Table):
    axis: int = int32(0)
    batch_dims: int = int32(1, 0, since=5)


class BatchToSpaceNDOptions(Table): ...


class SpaceToBatchNDOptions(Table): ...


class TransposeOptions(Table): ...


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


class ExpOptions(Table): ...


class TopKV2Options(Table): ...


class SplitOptions(Table):
    num_splits: int = int32(0)


class LogSoftmaxOptions(Table): ...


class CastOptions(Table):
    in_data_type: TensorType = enum(0, TensorType)
    out_data_type: TensorType = enum(1, TensorType)


class DequantizeOptions(Table): ...


class MaximumMinimumOptions(Table): ...


class ArgMaxOptions(Table):
    output_type: TensorType = enum(0, TensorType)


class LessOptions(Table): ...


class NegOptions(Table): ...


class PadV2Options(Table): ...


class GreaterOptions(Table): ...


class GreaterEqualOptions(Table): ...


class LessEqualOptions(Table): ...


class SelectOptions(Table): ...


class SliceOptions(Table): ...


class TransposeConvOptions(Table):
    padding: Padding = enum(0, Padding)
    stride_w: int = int32(1)
    stride_h: int = int32(2)
    fused_activation_function: ActivationFunctionType = enum(3, ActivationFunctionType, ActivationFunctionType.NONE, since=4)
    quantized_bias_type: TensorType = enum(4, TensorType, since=5)


class SparseToDenseOptions(Table):
    validate_indices: bool = boolean(0)


class TileOptions(Table): ...


class ExpandDimsOptions(Table): ...


class EqualOptions(Table): ...


class NotEqualOptions(Table): ...


class ShapeOptions(Table):
    out_type: TensorType = enum(0, TensorType)


class PowOptions(Table): ...


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


class LogicalOrOptions(Table): ...


class OneHotOptions(Table):
    axis: int = int32(0)


class LogicalAndOptions(Table): ...


class LogicalNotOptions(Table): ...


class UnpackOptions(Table):
    num: int = int32(0)
    axis: int = int32(1)


class FloorDivOptions(Table): ...


class SquareOptions(Table): ...


class ZerosLikeOptions(Table): ...


class FillOptions(Table): ...


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


class FloorModOptions(Table): ...


class RangeOptions(Table): ...


class ResizeNearestNeighborOptions(Table):
    align_corners: bool = boolean(0)
    half_pixel_centers: bool = boolean(1, since=3)


class LeakyReluOptions(Table):
    alpha: float = float32(0)


class SquaredDifferenceOptions(Table): ...


class MirrorPadOptions(Table):
    mode: MirrorPadMode = enum(0, MirrorPadMode)


class AbsOptions(Table): ...


class SplitVOptions(Table):
    num_splits: int = int32(0)


class UniqueOptions(Table):
    idx_out_type: TensorType = enum(0, TensorType, TensorType.INT32)


class ReverseV2Options(Table): ...


class AddNOptions(Table): ...


class GatherNdOptions(Table): ...


class CosOptions(Table): ...


class WhereOptions(Table): ...


class RankOptions(Table): ...


class ReverseSequenceOptions(Table):
    seq_dim: int = int32(0)
    batch_dim: int = int32(1, 0)


class MatrixDiagOptions(Table): ...


class QuantizeOptions(Table): ...


class MatrixSetDiagOptions(Table): ...


class HardSwishOptions(Table): ...


class IfOptions(Table):
    then_subgraph_index: int = int32(0)
    else_subgraph_index: int = int32(1)


class WhileOptions(Table):
    cond_subgraph_index: int = int32(0)
    body_subgraph_index: int = int32(1)


class DepthToSpaceOptions(Table):
    block_size: int = int32(0)


class NonMaxSuppressionV4Options(Table): ...


class NonMaxSuppressionV5Options(Table): ...


class ScatterNdOptions(Table): ...


class SelectV2Options(Table): ...


class DensifyOptions(Table): ...


class SegmentSumOptions(Table): ...


class BatchMatMulOptions(Table):
    adj_x: bool = boolean(0)
    adj_y: bool = boolean(1)
    asymmetric_quantize_inputs: bool = boolean(2, since=4)


class CumsumOptions(Table):
    exclusive: bool = boolean(0)
    reverse: bool = boolean(1)


class CallOnceOptions(Table):
    init_subgraph_index: int = int32(0)


class BroadcastToOptions(Table): ...


class Rfft2dOptions(Table): ...


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


class HashtableFindOptions(Table): ...


class HashtableImportOptions(Table): ...


class HashtableSizeOptions(Table): ...


class VarHandleOptions(Table):
    container: str | None = string(0)
    shared_name: str | None = string(1)


class ReadVariableOptions(Table): ...


class AssignVariableOptions(Table): ...


class RandomOptions(Table):
    seed: int = int64(0)
    seed2: int = int64(1)


class BucketizeOptions(Table):
    boundaries: NDArray[np.float32] | None = vector(0, "float32")


class GeluOptions(Table):
    approximate: bool = boolean(0)


class DynamicUpdateSliceOptions(Table): ...


class UnsortedSegmentProdOptions(Table): ...


class UnsortedSegmentMaxOptions(Table): ...


class UnsortedSegmentMinOptions(Table): ...


class UnsortedSegmentSumOptions(Table): ...


class ATan2Options(Table): ...


class SignOptions(Table): ...


class BitcastOptions(Table): ...


class BitwiseXorOptions(Table): ...


class RightShiftOptions(Table): ...


#: Union BuiltinOptions: table class by member number.
BuiltinOptions = union_members(globals())
