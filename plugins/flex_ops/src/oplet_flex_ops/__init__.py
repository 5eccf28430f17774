"""TensorFlow operators that models with SELECT_TF_OPS use most, in numpy. A model names them `Flex` plus the operator's name.

Its module, of a family in `oplet_flex_ops.ops`, is imported when a model needs it.
"""

from __future__ import annotations

from oplet import MutableOpResolver, hookimpl

#: The version of oplet's plugin API that this package is written for.
OPLET_API = "1"

#: The operators by family and module. In its module an operator is the constant of its name in capitals. All are of version 1.
OPS: dict[str, dict[str, str]] = {
    "arithmetic": {
        "binary": (
            "Add AddV2 Atan2 BitwiseAnd BitwiseOr BitwiseXor Div DivNoNan FloorDiv FloorMod LeftShift Maximum Minimum Mod Mul "
            "MulNoNan NextAfter Pow RealDiv RightShift SquaredDifference Sub TruncateDiv TruncateMod Xdivy Xlog1py Xlogy"
        ),
        "comparison": "ApproximateEqual Equal Greater GreaterEqual Less LessEqual LogicalAnd LogicalOr NotEqual",
        "normalization": "FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3",
        "pooling": "AvgPool MaxPool MaxPoolV2",
        "products": "BatchMatMul BatchMatMulV2 BatchMatMulV3 BiasAdd BiasAddV1 Conv2D DepthwiseConv2dNative MatMul",
        "reductions": ("All Any ArgMax ArgMin Cumprod Cumsum CumulativeLogsumexp EuclideanNorm L2Loss Max Mean Min Prod Sum"),
        "selection": "AddN Cast ClipByValue",
        "softmax": "LRN LogSoftmax Softmax",
        "unary": (
            "Abs Acos Acosh Asin Asinh Atan Atanh BesselI0 BesselI0e BesselI1 BesselI1e BesselJ0 BesselJ1 BesselK0 BesselK0e "
            "BesselK1 BesselK1e BesselY0 BesselY1 Betainc Ceil Cos Cosh Dawsn Digamma Elu Erf Erfc Erfinv Exp Expint Expm1 "
            "Floor FresnelCos FresnelSin Igamma Igammac Inv Invert IsFinite IsInf IsNan LeakyRelu Lgamma Log Log1p LogicalNot "
            "Ndtri Neg Polygamma PopulationCount Reciprocal Relu Relu6 Rint Round Rsqrt Selu Sigmoid Sign Sin Sinh Softplus "
            "Softsign Spence Sqrt Square Tan Tanh Zeta"
        ),
    },
    "arrays": {
        "blocks": "BatchToSpace BatchToSpaceND DepthToSpace SpaceToBatch SpaceToBatchND SpaceToDepth",
        "counting": (
            "Bincount DenseBincount HistogramFixedWidth InvertPermutation ListDiff Unique UniqueV2 UniqueWithCounts "
            "UniqueWithCountsV2"
        ),
        "creation": "BroadcastTo Diag DiagPart Empty Fill LinSpace OneHot OnesLike Range ZerosLike",
        "gathering": (
            "Gather GatherNd GatherV2 ScatterNd ScatterNdNonAliasingAdd TensorScatterAdd TensorScatterMax TensorScatterMin "
            "TensorScatterSub TensorScatterUpdate"
        ),
        "joining": "Concat ConcatV2 Pack Split SplitV Unpack",
        "layout": "ConjugateTranspose ExpandDims Reshape Reverse ReverseV2 Roll Squeeze Tile Transpose",
        "padding": "MirrorPad MirrorPadGrad Pad PadV2",
        "passing": (
            "Assert Bitcast CheckNumerics CheckNumericsV2 DeepCopy GuaranteeConst Identity IdentityN NoOp "
            "PlaceholderWithDefault PreventGradient Print PrintV2 Snapshot StopGradient"
        ),
        "segments": (
            "DynamicPartition DynamicStitch ParallelDynamicStitch SegmentMax SegmentMean SegmentMin SegmentProd SegmentSum "
            "UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd UnsortedSegmentSum"
        ),
        "selection": "Bucketize InTopK InTopKV2 LowerBound NthElement Select SelectV2 TopKV2 UpperBound Where",
        "shapes": "BroadcastArgs BroadcastGradientArgs ConcatOffset EnsureShape Rank Shape ShapeN Size",
        "slicing": "Slice StridedSlice StridedSliceGrad TensorStridedSliceUpdate",
    },
    "gradients": {
        "elementwise": (
            "EluGrad InvGrad LeakyReluGrad ReciprocalGrad Relu6Grad ReluGrad RsqrtGrad SeluGrad SigmoidGrad SoftplusGrad "
            "SoftsignGrad SqrtGrad TanhGrad"
        ),
        "layers": (
            "BiasAddGrad Conv2DBackpropFilter Conv2DBackpropInput DepthwiseConv2dNativeBackpropFilter "
            "DepthwiseConv2dNativeBackpropInput SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits"
        ),
        "normalization": "FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3 LRNGrad",
        "optimizers": (
            "ResourceApplyAdaMax ResourceApplyAdadelta ResourceApplyAdagrad ResourceApplyAdagradV2 ResourceApplyAdam "
            "ResourceApplyAdamWithAmsgrad ResourceApplyAddSign ResourceApplyCenteredRMSProp ResourceApplyFtrl "
            "ResourceApplyFtrlV2 ResourceApplyGradientDescent ResourceApplyKerasMomentum ResourceApplyMomentum "
            "ResourceApplyPowerSign ResourceApplyProximalAdagrad ResourceApplyProximalGradientDescent ResourceApplyRMSProp "
            "ResourceSparseApplyAdagradV2 ResourceSparseApplyKerasMomentum ResourceSparseApplyMomentum"
        ),
        "pools": "AvgPoolGrad MaxPoolGrad MaxPoolGradV2 MaxPoolGradWithArgmax",
        "variables": (
            "AssignAddVariableOp AssignSubVariableOp AssignVariableOp DestroyResourceOp ReadVariableOp ResourceGather "
            "ResourceScatterAdd ResourceScatterDiv ResourceScatterMax ResourceScatterMin ResourceScatterMul "
            "ResourceScatterSub ResourceScatterUpdate VarHandleOp VarIsInitializedOp VariableShape"
        ),
    },
    "images": {
        "colours": "AdjustContrastv2 AdjustHue AdjustSaturation DrawBoundingBoxes DrawBoundingBoxesV2 HSVToRGB RGBToHSV",
        "combined_suppression": "CombinedNonMaxSuppression",
        "crops": "CropAndResize ExtractGlimpse ExtractGlimpseV2",
        "files": "DecodeAndCropJpeg DecodeBmp DecodeGif DecodeImage DecodeJpeg DecodePng EncodeJpeg EncodePng",
        "patches": "ExtractImagePatches ExtractVolumePatches",
        "projective": "ImageProjectiveTransformV2 ImageProjectiveTransformV3",
        "resizing": "ResizeArea ResizeBicubic ResizeBilinear ResizeNearestNeighbor ScaleAndTranslate",
        "suppression": (
            "NonMaxSuppression NonMaxSuppressionV2 NonMaxSuppressionV3 NonMaxSuppressionV4 NonMaxSuppressionV5 "
            "NonMaxSuppressionWithOverlaps"
        ),
    },
    "linalg": {
        "decompositions": (
            "BatchCholesky BatchCholeskyGrad BatchSelfAdjointEig BatchSelfAdjointEigV2 BatchSvd Cholesky CholeskyGrad Eig Lu "
            "Qr SelfAdjointEig SelfAdjointEigV2 Svd"
        ),
        "diagonals": (
            "BatchMatrixDiag BatchMatrixDiagPart BatchMatrixSetDiag MatrixBandPart MatrixDiag MatrixDiagPart MatrixDiagPartV2 "
            "MatrixDiagPartV3 MatrixDiagV2 MatrixDiagV3 MatrixSetDiag MatrixSetDiagV2 MatrixSetDiagV3"
        ),
        "einsum": "Einsum",
        "functions": (
            "BatchMatrixDeterminant Cross LogMatrixDeterminant MatrixDeterminant MatrixExponential MatrixLogarithm "
            "MatrixSquareRoot"
        ),
        "solving": (
            "BandedTriangularSolve BatchMatrixInverse BatchMatrixSolve BatchMatrixSolveLs BatchMatrixTriangularSolve "
            "MatrixInverse MatrixSolve MatrixSolveLs MatrixTriangularSolve TridiagonalMatMul TridiagonalSolve"
        ),
    },
    "lookup": {
        "tables": (
            "AnonymousHashTable AnonymousMutableDenseHashTable AnonymousMutableHashTable AnonymousMutableHashTableOfTensors "
            "HashTableV2 InitializeTableV2 LookupTableExportV2 LookupTableFindV2 LookupTableImportV2 LookupTableInsertV2 "
            "LookupTableRemoveV2 LookupTableSizeV2 MutableDenseHashTableV2 MutableHashTableOfTensorsV2 MutableHashTableV2"
        )
    },
    "ragged": {
        "dense": "RaggedTensorToSparse RaggedTensorToTensor",
        "ranges": "RaggedGather RaggedRange",
        "variants": "RaggedTensorFromVariant RaggedTensorToVariant",
    },
    "random": {
        "stateful": "Multinomial RandomShuffle RandomStandardNormal RandomUniform RandomUniformInt TruncatedNormal",
        "stateless": (
            "StatelessMultinomial StatelessRandomGetAlg StatelessRandomGetKeyCounter StatelessRandomGetKeyCounterAlg "
            "StatelessRandomNormal StatelessRandomNormalV2 StatelessRandomUniform StatelessRandomUniformFullInt "
            "StatelessRandomUniformFullIntV2 StatelessRandomUniformInt StatelessRandomUniformIntV2 StatelessRandomUniformV2 "
            "StatelessShuffle StatelessTruncatedNormal StatelessTruncatedNormalV2"
        ),
    },
    "sequences": {
        "cells": "BlockLSTM BlockLSTMV2 GRUBlockCell LSTMBlockCell",
        "comparing": "EditDistance ReverseSequence",
        "ctc_decoding": "CTCBeamSearchDecoder CTCGreedyDecoder",
        "ctc_loss": "CTCLoss",
    },
    "signal": {
        "audio": "AudioSpectrogram Mfcc",
        "complex_parts": "Angle Complex ComplexAbs Conj Imag Real",
        "fourier": "FFT FFT2D FFT3D IFFT IFFT2D IFFT3D IRFFT IRFFT2D IRFFT3D RFFT RFFT2D RFFT3D",
        "wav": "DecodeWav EncodeWav",
    },
    "sparse": {
        "arithmetic": (
            "SparseAdd SparseDenseCwiseAdd SparseDenseCwiseDiv SparseDenseCwiseMul SparseMatMul SparseSparseMaximum "
            "SparseSparseMinimum SparseTensorDenseAdd SparseTensorDenseMatMul"
        ),
        "counting": ("DenseCountSparseOutput RaggedBincount RaggedCountSparseOutput SparseBincount SparseCountSparseOutput"),
        "layout": "SparseConcat SparseFillEmptyRows SparseReorder SparseReshape SparseSlice SparseSplit SparseToDense",
        "reductions": (
            "SparseReduceMax SparseReduceMaxSparse SparseReduceSum SparseReduceSumSparse SparseSegmentMean "
            "SparseSegmentMeanWithNumSegments SparseSegmentSqrtN SparseSegmentSqrtNWithNumSegments SparseSegmentSum "
            "SparseSegmentSumWithNumSegments SparseSoftmax"
        ),
    },
    "strings": {
        "decode_raw": "DecodePaddedRaw DecodeRaw",
        "joins": "ReduceJoin StringJoin UnsortedSegmentJoin",
        "regex": "RegexFullMatch RegexReplace StaticRegexFullMatch StaticRegexReplace",
        "single": (
            "AsString DecodeBase64 EncodeBase64 StringLength StringLower StringStrip StringToHashBucket "
            "StringToHashBucketFast StringToHashBucketStrong StringToNumber StringUpper"
        ),
        "split": "StringSplit StringSplitV2",
        "string_ngrams": "StringNGrams",
        "substr": "Substr",
    },
    "tensor_list": {
        "elements": (
            "TensorListGather TensorListGetItem TensorListPopBack TensorListPushBack TensorListPushBackBatch "
            "TensorListSetItem TensorListStack"
        ),
        "lists": (
            "EmptyTensorList TensorListConcat TensorListConcatLists TensorListConcatV2 TensorListElementShape "
            "TensorListFromTensor TensorListLength TensorListReserve TensorListResize TensorListSplit"
        ),
        "scatter": "TensorListScatter TensorListScatterIntoExistingList TensorListScatterV2",
    },
    "volumes": {
        "convolution": "Conv3D Conv3DBackpropFilterV2 Conv3DBackpropInputV2 Dilation2D",
        "pooling": "AvgPool3D AvgPool3DGrad MaxPool3D MaxPool3DGrad MaxPoolWithArgmax",
    },
}

#: Operators that the converter writes under their own name, as they are not on its list of Flex operators.
_UNPREFIXED = (
    "Acos Acosh Asin Asinh Atanh BandedTriangularSolve BatchCholeskyGrad BatchMatMulV3 BatchMatrixSolve BatchMatrixSolveLs "
    "BatchSelfAdjointEig BatchSelfAdjointEigV2 BatchSvd BesselI0 BesselI0e BesselI1 BesselI1e BesselJ0 BesselJ1 BesselK0 "
    "BesselK0e BesselK1 BesselK1e BesselY0 BesselY1 Betainc BlockLSTM BlockLSTMV2 CTCLoss CholeskyGrad Cross Dawsn "
    "DenseCountSparseOutput Digamma DrawBoundingBoxes DrawBoundingBoxesV2 EditDistance Eig Erfc Erfinv EuclideanNorm Expint "
    "Expm1 ExtractGlimpse ExtractGlimpseV2 ExtractVolumePatches FresnelCos FresnelSin GRUBlockCell GuaranteeConst "
    "HistogramFixedWidth Igamma Igammac IsInf L2Loss LRNGrad LSTMBlockCell Lgamma Log1p LowerBound Lu MatrixExponential "
    "MatrixLogarithm MatrixSolve MatrixSolveLs MatrixSquareRoot Mod Ndtri NextAfter NthElement Polygamma "
    "RaggedCountSparseOutput ResizeArea Rint ScaleAndTranslate SelfAdjointEig SelfAdjointEigV2 Snapshot SparseConcat "
    "SparseCountSparseOutput SparseDenseCwiseAdd SparseDenseCwiseDiv SparseDenseCwiseMul SparseMatMul SparseReduceMax "
    "SparseReduceMaxSparse SparseReduceSumSparse SparseSoftmax SparseSparseMaximum SparseSparseMinimum SparseSplit "
    "SparseTensorDenseAdd Spence StatelessShuffle StringNGrams StringUpper Svd TridiagonalMatMul TridiagonalSolve "
    "TruncateMod Zeta"
)
UNPREFIXED = frozenset(_UNPREFIXED.split())


@hookimpl
def register_ops(resolver: MutableOpResolver) -> None:
    """Register the operators with the resolver, under their custom-op names in models."""
    for family, modules in OPS.items():
        for module, ops in modules.items():
            for op in ops.split():
                target = f"{__name__}.ops.{family}.{module}:{op.upper()}"
                resolver.add_custom(f"Flex{op}", target)
                if op in UNPREFIXED:
                    resolver.add_custom(op, target)
