"""TensorFlow's operators that models with SELECT_TF_OPS use most, in numpy. A model names them `Flex` and the operator's name.

Each is one module of a family in `oplet_flex_ops.ops`, which is imported when a model needs it.
"""

from __future__ import annotations

from oplet import MutableOpResolver, hookimpl

#: The version of oplet's plugin API that this package is written for.
OPLET_API = "1"

#: The module of each operator, by family; several small operators may share a module: "module:NAME". All are of version 1.
# fmt: off
OPS: dict[str, dict[str, str]] = {
    "arrays": {
        "BatchToSpace": "blocks:BATCH_TO_SPACE", "BatchToSpaceND": "blocks:BATCH_TO_SPACE_ND",
        "DepthToSpace": "blocks:DEPTH_TO_SPACE", "SpaceToBatch": "blocks:SPACE_TO_BATCH",
        "SpaceToBatchND": "blocks:SPACE_TO_BATCH_ND", "SpaceToDepth": "blocks:SPACE_TO_DEPTH", "Bincount": "counting:BINCOUNT",
        "DenseBincount": "counting:DENSE_BINCOUNT", "HistogramFixedWidth": "counting:HISTOGRAM_FIXED_WIDTH",
        "InvertPermutation": "counting:INVERT_PERMUTATION", "ListDiff": "counting:LIST_DIFF", "Unique": "counting:UNIQUE",
        "UniqueV2": "counting:UNIQUE_V2", "UniqueWithCounts": "counting:UNIQUE_WITH_COUNTS",
        "UniqueWithCountsV2": "counting:UNIQUE_WITH_COUNTS_V2", "BroadcastTo": "creation:BROADCAST_TO", "Diag": "creation:DIAG",
        "DiagPart": "creation:DIAG_PART", "Empty": "creation:EMPTY", "Fill": "creation:FILL", "LinSpace": "creation:LIN_SPACE",
        "OneHot": "creation:ONE_HOT", "OnesLike": "creation:ONES_LIKE", "Range": "creation:RANGE",
        "ZerosLike": "creation:ZEROS_LIKE", "Gather": "gathering:GATHER", "GatherNd": "gathering:GATHER_ND",
        "GatherV2": "gathering:GATHER_V2", "ScatterNd": "gathering:SCATTER_ND",
        "ScatterNdNonAliasingAdd": "gathering:SCATTER_ND_NON_ALIASING_ADD", "TensorScatterAdd": "gathering:TENSOR_SCATTER_ADD",
        "TensorScatterMax": "gathering:TENSOR_SCATTER_MAX", "TensorScatterMin": "gathering:TENSOR_SCATTER_MIN",
        "TensorScatterSub": "gathering:TENSOR_SCATTER_SUB", "TensorScatterUpdate": "gathering:TENSOR_SCATTER_UPDATE",
        "Concat": "joining:CONCAT", "ConcatV2": "joining:CONCAT_V2", "Pack": "joining:PACK", "Split": "joining:SPLIT",
        "SplitV": "joining:SPLIT_V", "Unpack": "joining:UNPACK", "ConjugateTranspose": "layout:CONJUGATE_TRANSPOSE",
        "ExpandDims": "layout:EXPAND_DIMS", "Reshape": "layout:RESHAPE", "Reverse": "layout:REVERSE",
        "ReverseV2": "layout:REVERSE_V2", "Roll": "layout:ROLL", "Squeeze": "layout:SQUEEZE", "Tile": "layout:TILE",
        "Transpose": "layout:TRANSPOSE", "MirrorPad": "padding:MIRROR_PAD", "MirrorPadGrad": "padding:MIRROR_PAD_GRAD",
        "Pad": "padding:PAD", "PadV2": "padding:PAD_V2", "Assert": "passing:ASSERT", "Bitcast": "passing:BITCAST",
        "CheckNumerics": "passing:CHECK_NUMERICS", "CheckNumericsV2": "passing:CHECK_NUMERICS_V2", "DeepCopy": "passing:DEEP_COPY",
        "GuaranteeConst": "passing:GUARANTEE_CONST", "Identity": "passing:IDENTITY", "IdentityN": "passing:IDENTITY_N",
        "NoOp": "passing:NO_OP", "PlaceholderWithDefault": "passing:PLACEHOLDER_WITH_DEFAULT",
        "PreventGradient": "passing:PREVENT_GRADIENT", "Print": "passing:PRINT", "PrintV2": "passing:PRINT_V2",
        "Snapshot": "passing:SNAPSHOT", "StopGradient": "passing:STOP_GRADIENT", "DynamicPartition": "segments:DYNAMIC_PARTITION",
        "DynamicStitch": "segments:DYNAMIC_STITCH", "ParallelDynamicStitch": "segments:PARALLEL_DYNAMIC_STITCH",
        "SegmentMax": "segments:SEGMENT_MAX", "SegmentMean": "segments:SEGMENT_MEAN", "SegmentMin": "segments:SEGMENT_MIN",
        "SegmentProd": "segments:SEGMENT_PROD", "SegmentSum": "segments:SEGMENT_SUM",
        "UnsortedSegmentMax": "segments:UNSORTED_SEGMENT_MAX", "UnsortedSegmentMin": "segments:UNSORTED_SEGMENT_MIN",
        "UnsortedSegmentProd": "segments:UNSORTED_SEGMENT_PROD", "UnsortedSegmentSum": "segments:UNSORTED_SEGMENT_SUM",
        "Bucketize": "selection:BUCKETIZE", "InTopK": "selection:IN_TOP_K", "InTopKV2": "selection:IN_TOP_K_V2",
        "LowerBound": "selection:LOWER_BOUND", "NthElement": "selection:NTH_ELEMENT", "Select": "selection:SELECT",
        "SelectV2": "selection:SELECT_V2", "TopKV2": "selection:TOP_K_V2", "UpperBound": "selection:UPPER_BOUND",
        "Where": "selection:WHERE", "BroadcastArgs": "shapes:BROADCAST_ARGS",
        "BroadcastGradientArgs": "shapes:BROADCAST_GRADIENT_ARGS", "ConcatOffset": "shapes:CONCAT_OFFSET",
        "EnsureShape": "shapes:ENSURE_SHAPE", "Rank": "shapes:RANK", "Shape": "shapes:SHAPE", "ShapeN": "shapes:SHAPE_N",
        "Size": "shapes:SIZE", "Slice": "slicing:SLICE", "StridedSlice": "slicing:STRIDED_SLICE",
        "StridedSliceGrad": "slicing:STRIDED_SLICE_GRAD", "TensorStridedSliceUpdate": "slicing:TENSOR_STRIDED_SLICE_UPDATE",
    },
    "arithmetic": {},
    "gradients": {},
    "images": {
        "AdjustContrastv2": "colours:ADJUST_CONTRAST_V2", "AdjustHue": "colours:ADJUST_HUE",
        "AdjustSaturation": "colours:ADJUST_SATURATION", "HSVToRGB": "colours:HSV_TO_RGB", "RGBToHSV": "colours:RGB_TO_HSV",
        "CombinedNonMaxSuppression": "combined_suppression", "CropAndResize": "crops:CROP_AND_RESIZE",
        "ExtractGlimpse": "crops:EXTRACT_GLIMPSE", "ExtractGlimpseV2": "crops:EXTRACT_GLIMPSE_V2",
        "DrawBoundingBoxes": "drawing:DRAW_BOUNDING_BOXES", "DrawBoundingBoxesV2": "drawing:DRAW_BOUNDING_BOXES_V2",
        "DecodeAndCropJpeg": "files:DECODE_AND_CROP_JPEG", "DecodeBmp": "files:DECODE_BMP", "DecodeGif": "files:DECODE_GIF",
        "DecodeImage": "files:DECODE_IMAGE", "DecodeJpeg": "files:DECODE_JPEG", "DecodePng": "files:DECODE_PNG",
        "EncodeJpeg": "files:ENCODE_JPEG", "EncodePng": "files:ENCODE_PNG", "ExtractImagePatches": "patches:EXTRACT_IMAGE_PATCHES",
        "ExtractVolumePatches": "patches:EXTRACT_VOLUME_PATCHES",
        "ImageProjectiveTransformV2": "projective:IMAGE_PROJECTIVE_TRANSFORM_V2",
        "ImageProjectiveTransformV3": "projective:IMAGE_PROJECTIVE_TRANSFORM_V3", "ResizeArea": "resizing:RESIZE_AREA",
        "ResizeBicubic": "resizing:RESIZE_BICUBIC", "ResizeBilinear": "resizing:RESIZE_BILINEAR",
        "ResizeNearestNeighbor": "resizing:RESIZE_NEAREST_NEIGHBOR", "ScaleAndTranslate": "resizing:SCALE_AND_TRANSLATE",
        "NonMaxSuppression": "suppression:NON_MAX_SUPPRESSION", "NonMaxSuppressionV2": "suppression:NON_MAX_SUPPRESSION_V2",
        "NonMaxSuppressionV3": "suppression:NON_MAX_SUPPRESSION_V3", "NonMaxSuppressionV4": "suppression:NON_MAX_SUPPRESSION_V4",
        "NonMaxSuppressionV5": "suppression:NON_MAX_SUPPRESSION_V5",
        "NonMaxSuppressionWithOverlaps": "suppression:NON_MAX_SUPPRESSION_WITH_OVERLAPS",
    },
    "linalg": {},
    "lookup": {},
    "ragged": {
        "RaggedTensorToSparse": "dense:RAGGED_TENSOR_TO_SPARSE", "RaggedTensorToTensor": "dense:RAGGED_TENSOR_TO_TENSOR",
        "RaggedGather": "ranges:RAGGED_GATHER", "RaggedRange": "ranges:RAGGED_RANGE",
        "RaggedTensorFromVariant": "variants:RAGGED_TENSOR_FROM_VARIANT",
        "RaggedTensorToVariant": "variants:RAGGED_TENSOR_TO_VARIANT",
    },
    "random": {},
    "sequences": {
        "BlockLSTM": "cells:BLOCK_LSTM", "BlockLSTMV2": "cells:BLOCK_LSTM_V2", "GRUBlockCell": "cells:GRU_BLOCK_CELL",
        "LSTMBlockCell": "cells:LSTM_BLOCK_CELL", "EditDistance": "comparing:EDIT_DISTANCE",
        "ReverseSequence": "comparing:REVERSE_SEQUENCE", "CTCBeamSearchDecoder": "ctc_decoding:CTC_BEAM_SEARCH_DECODER",
        "CTCGreedyDecoder": "ctc_decoding:CTC_GREEDY_DECODER", "CTCLoss": "ctc_loss:CTC_LOSS", "CTCLossV2": "ctc_loss:CTC_LOSS_V2",
    },
    "signal": {},
    "sparse": {
        "SparseAdd": "arithmetic:SPARSE_ADD", "SparseDenseCwiseAdd": "arithmetic:SPARSE_DENSE_CWISE_ADD",
        "SparseDenseCwiseDiv": "arithmetic:SPARSE_DENSE_CWISE_DIV", "SparseDenseCwiseMul": "arithmetic:SPARSE_DENSE_CWISE_MUL",
        "SparseMatMul": "arithmetic:SPARSE_MAT_MUL", "SparseSparseMaximum": "arithmetic:SPARSE_SPARSE_MAXIMUM",
        "SparseSparseMinimum": "arithmetic:SPARSE_SPARSE_MINIMUM", "SparseTensorDenseAdd": "arithmetic:SPARSE_TENSOR_DENSE_ADD",
        "SparseTensorDenseMatMul": "arithmetic:SPARSE_TENSOR_DENSE_MAT_MUL",
        "DenseCountSparseOutput": "counting:DENSE_COUNT_SPARSE_OUTPUT", "RaggedBincount": "counting:RAGGED_BINCOUNT",
        "RaggedCountSparseOutput": "counting:RAGGED_COUNT_SPARSE_OUTPUT", "SparseBincount": "counting:SPARSE_BINCOUNT",
        "SparseCountSparseOutput": "counting:SPARSE_COUNT_SPARSE_OUTPUT", "SparseConcat": "layout:SPARSE_CONCAT",
        "SparseFillEmptyRows": "layout:SPARSE_FILL_EMPTY_ROWS", "SparseReorder": "layout:SPARSE_REORDER",
        "SparseReshape": "layout:SPARSE_RESHAPE", "SparseSlice": "layout:SPARSE_SLICE", "SparseSplit": "layout:SPARSE_SPLIT",
        "SparseToDense": "layout:SPARSE_TO_DENSE", "SparseReduceMax": "reductions:SPARSE_REDUCE_MAX",
        "SparseReduceMaxSparse": "reductions:SPARSE_REDUCE_MAX_SPARSE", "SparseReduceSum": "reductions:SPARSE_REDUCE_SUM",
        "SparseReduceSumSparse": "reductions:SPARSE_REDUCE_SUM_SPARSE", "SparseSoftmax": "reductions:SPARSE_SOFTMAX",
        "SparseSegmentMean": "segments:SPARSE_SEGMENT_MEAN",
        "SparseSegmentMeanWithNumSegments": "segments:SPARSE_SEGMENT_MEAN_WITH_NUM_SEGMENTS",
        "SparseSegmentSqrtN": "segments:SPARSE_SEGMENT_SQRT_N",
        "SparseSegmentSqrtNWithNumSegments": "segments:SPARSE_SEGMENT_SQRT_N_WITH_NUM_SEGMENTS",
        "SparseSegmentSum": "segments:SPARSE_SEGMENT_SUM",
        "SparseSegmentSumWithNumSegments": "segments:SPARSE_SEGMENT_SUM_WITH_NUM_SEGMENTS",
    },
    "strings": {},
    "tensor_list": {},
    "volumes": {
        "Conv3D": "convolution:CONV_3D", "Conv3DBackpropFilterV2": "convolution:CONV_3D_BACKPROP_FILTER_V2",
        "Conv3DBackpropInputV2": "convolution:CONV_3D_BACKPROP_INPUT_V2", "Dilation2D": "dilation",
        "AvgPool3D": "pooling:AVG_POOL_3D", "AvgPool3DGrad": "pooling:AVG_POOL_3D_GRAD", "MaxPool3D": "pooling:MAX_POOL_3D",
        "MaxPool3DGrad": "pooling:MAX_POOL_3D_GRAD", "MaxPoolWithArgmax": "pooling:MAX_POOL_WITH_ARGMAX",
    },
}
# fmt: on

#: Operators that the converter writes under their own name, as they are not on its list of Flex operators.
UNPREFIXED = ("BesselI0e", "BesselI1e", "Erfinv", "Svd")


@hookimpl
def register_ops(resolver: MutableOpResolver) -> None:
    """Register the operators, under the names that models call them."""
    for family, ops in OPS.items():
        for op, module in ops.items():
            target = f"{__name__}.ops.{family}.{module}" + ("" if ":" in module else ":REGISTRATION")
            resolver.add_custom(f"Flex{op}", target)
            if op in UNPREFIXED:
                resolver.add_custom(op, target)
