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
    "images": {},
    "linalg": {},
    "lookup": {
        "AnonymousHashTable": "making:ANONYMOUS_STATIC",
        "AnonymousMutableDenseHashTable": "making:ANONYMOUS_DENSE",
        "AnonymousMutableHashTable": "making:ANONYMOUS_MUTABLE",
        "AnonymousMutableHashTableOfTensors": "making:ANONYMOUS_OF_TENSORS",
        "HashTableV2": "making:STATIC",
        "InitializeTableV2": "tables:IMPORT",
        "LookupTableExportV2": "tables:EXPORT",
        "LookupTableFindV2": "tables:FIND",
        "LookupTableImportV2": "tables:IMPORT",
        "LookupTableInsertV2": "tables:INSERT",
        "LookupTableRemoveV2": "tables:REMOVE",
        "LookupTableSizeV2": "tables:SIZE",
        "MutableDenseHashTableV2": "making:DENSE",
        "MutableHashTableOfTensorsV2": "making:OF_TENSORS",
        "MutableHashTableV2": "making:MUTABLE",
    },
    "ragged": {},
    "random": {},
    "sequences": {},
    "signal": {},
    "sparse": {},
    "strings": {
        "AsString": "as_string",
        "DecodeBase64": "single:DECODE_BASE64",
        "DecodePaddedRaw": "decode_raw",
        "DecodeRaw": "decode_raw",
        "EncodeBase64": "single:ENCODE_BASE64",
        "ReduceJoin": "joins:REDUCE",
        "RegexFullMatch": "regex:MATCH",
        "RegexReplace": "regex:REPLACE",
        "StaticRegexFullMatch": "regex:STATIC_MATCH",
        "StaticRegexReplace": "regex:STATIC_REPLACE",
        "StringJoin": "joins:JOIN",
        "StringLength": "single:LENGTH",
        "StringLower": "single:LOWER",
        "StringNGrams": "string_ngrams",
        "StringSplit": "split:SPLIT",
        "StringSplitV2": "split:SPLIT_V2",
        "StringStrip": "single:STRIP",
        "StringToHashBucket": "hash_buckets:OLDER",
        "StringToHashBucketFast": "hash_buckets:FAST",
        "StringToHashBucketStrong": "hash_buckets:STRONG",
        "StringToNumber": "string_to_number",
        "StringUpper": "single:UPPER",
        "Substr": "substr",
        "UnicodeDecode": "unicode:DECODE",
        "UnicodeDecodeWithOffsets": "unicode:DECODE",
        "UnicodeEncode": "unicode:ENCODE",
        "UnicodeTranscode": "unicode:TRANSCODE",
        "UnsortedSegmentJoin": "joins:SEGMENTS",
    },
    "tensor_list": {
        "EmptyTensorList": "making:EMPTY",
        "TensorListConcat": "concat",
        "TensorListConcatLists": "concat_lists",
        "TensorListConcatV2": "concat",
        "TensorListElementShape": "sizes:ELEMENT_SHAPE",
        "TensorListFromTensor": "making:FROM_TENSOR",
        "TensorListGather": "stacking:GATHER",
        "TensorListGetItem": "items:GET",
        "TensorListLength": "sizes:LENGTH",
        "TensorListPopBack": "ends:POP",
        "TensorListPushBack": "ends:PUSH",
        "TensorListPushBackBatch": "ends:PUSH_BATCH",
        "TensorListReserve": "making:RESERVE",
        "TensorListResize": "sizes:RESIZE",
        "TensorListScatter": "scatter",
        "TensorListScatterIntoExistingList": "scatter:INTO",
        "TensorListScatterV2": "scatter",
        "TensorListSetItem": "items:SET",
        "TensorListSplit": "split",
        "TensorListStack": "stacking:STACK",
    },
    "volumes": {},
}
# fmt: on

#: Operators that the converter writes under their own name, as they are not on its list of Flex operators.
UNPREFIXED = ("BesselI0e", "BesselI1e", "Erfinv", "StringNGrams", "StringUpper", "Svd")


@hookimpl
def register_ops(resolver: MutableOpResolver) -> None:
    """Register the operators, under the names that models call them."""
    for family, ops in OPS.items():
        for op, module in ops.items():
            target = f"{__name__}.ops.{family}.{module}" + ("" if ":" in module else ":REGISTRATION")
            resolver.add_custom(f"Flex{op}", target)
            if op in UNPREFIXED:
                resolver.add_custom(op, target)
