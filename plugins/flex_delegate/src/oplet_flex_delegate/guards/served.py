"""The TensorFlow operators that may run: those that survived tests with hostile attributes and inputs.

They are the ones that TensorFlow's converter may write (tensorflow/lite/delegates/flex/allowlisted_flex_ops.cc), and others that models ask
for with `experimental_select_user_tf_ops`; without those of `dangers.py`, of reference variables, and of types that .tflite files have not.
"""

from __future__ import annotations

__all__ = ["SERVED"]

_SERVED = """
    Abs Acos Acosh Add AddN AddV2 AdjustContrast AdjustContrastv2 AdjustHue AdjustSaturation All Angle AnonymousHashTable
    AnonymousMutableDenseHashTable AnonymousMutableHashTable AnonymousMutableHashTableOfTensors Any ApproxTopK
    ApproximateEqual ArgMax ArgMin AsString Asin Asinh Assert AssignAddVariableOp AssignSubVariableOp AssignVariableOp Atan
    Atan2 Atanh AudioSpectrogram AvgPool AvgPool3D AvgPool3DGrad AvgPoolGrad BandedTriangularSolve BatchCholesky
    BatchCholeskyGrad BatchMatMul BatchMatMulV2 BatchMatMulV3 BatchMatrixBandPart BatchMatrixDeterminant BatchMatrixDiag
    BatchMatrixDiagPart BatchMatrixInverse BatchMatrixSetDiag BatchMatrixSolve BatchMatrixSolveLs BatchMatrixTriangularSolve
    BatchNormWithGlobalNormalization BatchNormWithGlobalNormalizationGrad BatchSelfAdjointEig BatchSelfAdjointEigV2 BatchSvd
    BatchToSpace BatchToSpaceND BesselI0 BesselI0e BesselI1 BesselI1e BesselJ0 BesselJ1 BesselK0 BesselK0e BesselK1 BesselK1e
    BesselY0 BesselY1 Betainc BiasAdd BiasAddGrad BiasAddV1 Bincount Bitcast BitwiseAnd BitwiseOr BitwiseXor BroadcastArgs
    BroadcastGradientArgs BroadcastTo Bucketize CTCBeamSearchDecoder CTCGreedyDecoder CTCLoss Cast Ceil CheckNumerics
    CheckNumericsV2 Cholesky CholeskyGrad ClipByValue CombinedNonMaxSuppression Complex ComplexAbs ComputeAccidentalHits
    Concat ConcatOffset ConcatV2 Conj ConjugateTranspose Const Conv2D Conv2DBackpropFilter Conv2DBackpropInput Conv3D
    Conv3DBackpropFilter Conv3DBackpropFilterV2 Conv3DBackpropInput Conv3DBackpropInputV2 Cos Cosh CropAndResize
    CropAndResizeGradBoxes CropAndResizeGradImage Cross Cumprod Cumsum CumulativeLogsumexp DataFormatDimMap
    DataFormatVecPermute Dawsn DebugGradientIdentity DecodeAndCropJpeg DecodeBase64 DecodeBmp DecodeCSV DecodeGif DecodeImage
    DecodeJpeg DecodePaddedRaw DecodePng DecodeRaw DecodeWav DenseBincount DenseCountSparseOutput
    DenseToDenseSetOperation DenseToSparseSetOperation DepthToSpace DepthwiseConv2dNative DepthwiseConv2dNativeBackpropFilter
    DepthwiseConv2dNativeBackpropInput DeserializeManySparse DeserializeSparse DestroyResourceOp Diag DiagPart Digamma
    Dilation2D Dilation2DBackpropFilter Dilation2DBackpropInput Div DivNoNan DrawBoundingBoxes DrawBoundingBoxesV2
    DynamicPartition DynamicStitch EditDistance Eig Einsum Elu EluGrad Empty EmptyTensorList EmptyTensorMap EncodeBase64
    EncodeJpeg EncodeJpegVariableQuality EncodePng EncodeWav EnsureShape Equal Erf Erfc Erfinv EuclideanNorm Exp ExpandDims
    Expint Expm1 ExtractGlimpse ExtractGlimpseV2 ExtractImagePatches ExtractJpegShape ExtractVolumePatches FFT FFT2D FFT3D
    FakeQuantWithMinMaxArgs FakeQuantWithMinMaxArgsGradient FakeQuantWithMinMaxVars FakeQuantWithMinMaxVarsGradient
    FakeQuantWithMinMaxVarsPerChannel FakeQuantWithMinMaxVarsPerChannelGradient Fill Fingerprint Floor FloorDiv FloorMod
    FractionalAvgPool FractionalAvgPoolGrad FractionalMaxPool FractionalMaxPoolGrad FresnelCos FresnelSin FusedBatchNorm
    FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3 FusedBatchNormV2 FusedBatchNormV3 FusedPadConv2D
    FusedResizeAndPadConv2D Gather GatherNd GatherV2 Greater GreaterEqual GuaranteeConst HSVToRGB HashTableV2
    HistogramFixedWidth HistogramSummary IFFT IFFT2D IFFT3D IRFFT IRFFT2D IRFFT3D Identity IdentityN Igamma IgammaGradA
    Igammac Imag ImageProjectiveTransformV2 ImageProjectiveTransformV3 InTopK InTopKV2 InitializeTableV2 Inv InvGrad Invert
    InvertPermutation IsFinite IsInf IsNan IsTensorFloat32Enabled IsotonicRegression L2Loss LRN LRNGrad LeakyRelu
    LeakyReluGrad LearnedUnigramCandidateSampler LeftShift Less LessEqual Lgamma LinSpace ListDiff Log Log1p
    LogMatrixDeterminant LogSoftmax LogUniformCandidateSampler LogicalAnd LogicalNot LogicalOr LookupTableExportV2 LookupTableFindV2
    LookupTableImportV2 LookupTableInsertV2 LookupTableRemoveV2 LookupTableSizeV2 LowerBound Lu MatMul MatrixBandPart
    MatrixDeterminant MatrixDiag MatrixDiagPart MatrixDiagPartV2 MatrixDiagPartV3 MatrixDiagV2 MatrixDiagV3 MatrixExponential
    MatrixInverse MatrixLogarithm MatrixSetDiag MatrixSetDiagV2 MatrixSetDiagV3 MatrixSolve MatrixSolveLs MatrixSquareRoot
    MatrixTriangularSolve Max MaxPool MaxPool3D MaxPool3DGrad MaxPool3DGradGrad MaxPoolGrad MaxPoolGradGrad MaxPoolGradGradV2
    MaxPoolGradV2 MaxPoolGradWithArgmax MaxPoolV2 MaxPoolWithArgmax Maximum Mean MergeSummary Mfcc Min Minimum MirrorPad
    MirrorPadGrad Mod Mul MulNoNan Multinomial MutableDenseHashTableV2 MutableHashTableOfTensorsV2 MutableHashTableV2 Ndtri
    Neg NextAfter NoOp NonDeterministicInts NonMaxSuppression NonMaxSuppressionV2 NonMaxSuppressionV3 NonMaxSuppressionV4
    NonMaxSuppressionV5 NonMaxSuppressionWithOverlaps NotEqual NthElement OneHot OnesLike OptionalFromValue OptionalGetValue
    OptionalHasValue OptionalNone Pack Pad PadV2 ParallelDynamicStitch ParameterizedTruncatedNormal ParseExample
    ParseExampleV2 ParseSequenceExample ParseSequenceExampleV2 ParseSingleExample Polygamma PopulationCount Pow
    PreventGradient Prod Qr QuantizeAndDequantize QuantizeAndDequantizeV2 QuantizeAndDequantizeV3 QuantizeAndDequantizeV4
    QuantizeAndDequantizeV4Grad QuantizedConcat QuantizedReshape QuantizedResizeBilinear RFFT RFFT2D RFFT3D RGBToHSV
    RaggedBincount RaggedCountSparseOutput RaggedFillEmptyRows RaggedFillEmptyRowsGrad RaggedGather RaggedRange
    RaggedTensorFromVariant RaggedTensorToSparse RaggedTensorToTensor RaggedTensorToVariant RandomGamma RandomGammaGrad
    RandomIndexShuffle RandomPoisson RandomPoissonV2 RandomShuffle RandomStandardNormal RandomUniform RandomUniformInt Range
    Rank ReadVariableOp Real RealDiv Reciprocal ReciprocalGrad ReduceJoin RegexFullMatch RegexReplace Relu Relu6 Relu6Grad
    ReluGrad Reshape ResizeArea ResizeBicubic ResizeBicubicGrad ResizeBilinear ResizeBilinearGrad ResizeNearestNeighbor
    ResizeNearestNeighborGrad ResourceApplyAdaMax ResourceApplyAdadelta ResourceApplyAdagrad ResourceApplyAdagradDA
    ResourceApplyAdagradV2 ResourceApplyAdam ResourceApplyAdamWithAmsgrad ResourceApplyAddSign ResourceApplyCenteredRMSProp
    ResourceApplyFtrl ResourceApplyFtrlV2 ResourceApplyGradientDescent ResourceApplyKerasMomentum ResourceApplyMomentum
    ResourceApplyPowerSign ResourceApplyProximalAdagrad ResourceApplyProximalGradientDescent ResourceApplyRMSProp
    ResourceGather ResourceGatherNd ResourceScatterAdd ResourceScatterDiv ResourceScatterMax ResourceScatterMin
    ResourceScatterMul ResourceScatterNdAdd ResourceScatterNdMax ResourceScatterNdMin ResourceScatterNdSub
    ResourceScatterNdUpdate ResourceScatterSub ResourceScatterUpdate ResourceSparseApplyAdadelta ResourceSparseApplyAdagrad
    ResourceSparseApplyAdagradDA ResourceSparseApplyAdagradV2 ResourceSparseApplyCenteredRMSProp ResourceSparseApplyFtrl
    ResourceSparseApplyFtrlV2 ResourceSparseApplyKerasMomentum ResourceSparseApplyMomentum ResourceSparseApplyProximalAdagrad
    ResourceSparseApplyProximalGradientDescent ResourceSparseApplyRMSProp ResourceStridedSliceAssign Reverse ReverseSequence
    ReverseV2 RightShift Rint RngReadAndSkip RngSkip Roll Round Rsqrt RsqrtGrad SampleDistortedBoundingBox
    SampleDistortedBoundingBoxV2 ScalarSummary ScaleAndTranslate ScaleAndTranslateGrad ScatterNd ScatterNdNonAliasingAdd
    SegmentMax SegmentMean SegmentMin SegmentProd SegmentSum Select SelectV2 SelfAdjointEig SelfAdjointEigV2 Selu SeluGrad
    SerializeManySparse SerializeSparse SerializeTensor SetSize Shape ShapeN ShardedFilename ShardedFilespec Sigmoid
    SigmoidGrad Sign Sin Sinh Size Slice SobolSample Softmax SoftmaxCrossEntropyWithLogits Softplus SoftplusGrad Softsign
    SoftsignGrad SpaceToBatch SpaceToBatchND SpaceToDepth SparseAdd SparseAddGrad SparseBincount SparseConcat
    SparseCountSparseOutput SparseCross SparseCrossHashed SparseCrossV2 SparseDenseCwiseAdd SparseDenseCwiseDiv
    SparseDenseCwiseMul SparseFillEmptyRows SparseFillEmptyRowsGrad SparseMatMul SparseReduceMax SparseReduceMaxSparse
    SparseReduceSum SparseReduceSumSparse SparseReorder SparseReshape SparseSegmentMean SparseSegmentMeanGrad
    SparseSegmentMeanGradV2 SparseSegmentMeanWithNumSegments SparseSegmentSqrtN SparseSegmentSqrtNGrad
    SparseSegmentSqrtNGradV2 SparseSegmentSqrtNWithNumSegments SparseSegmentSum SparseSegmentSumGrad SparseSegmentSumGradV2
    SparseSegmentSumWithNumSegments SparseSlice SparseSliceGrad SparseSoftmax SparseSoftmaxCrossEntropyWithLogits
    SparseSparseMaximum SparseSparseMinimum SparseSplit SparseTensorDenseAdd SparseTensorDenseMatMul SparseToDense
    SparseToSparseSetOperation Spence Split SplitV Sqrt SqrtGrad Square SquaredDifference Squeeze StatefulStandardNormal
    StatefulStandardNormalV2 StatefulTruncatedNormal StatefulUniform StatefulUniformFullInt StatefulUniformInt
    StatelessMultinomial StatelessParameterizedTruncatedNormal StatelessRandomBinomial StatelessRandomGammaV2
    StatelessRandomGammaV3 StatelessRandomGetAlg StatelessRandomGetKeyCounter StatelessRandomGetKeyCounterAlg
    StatelessRandomNormal StatelessRandomNormalV2 StatelessRandomPoisson StatelessRandomUniform StatelessRandomUniformFullInt
    StatelessRandomUniformFullIntV2 StatelessRandomUniformInt StatelessRandomUniformIntV2 StatelessRandomUniformV2
    StatelessSampleDistortedBoundingBox StatelessShuffle StatelessTruncatedNormal StatelessTruncatedNormalV2
    StaticRegexFullMatch StaticRegexReplace StochasticCastToInt StopGradient StridedSlice StridedSliceGrad StringFormat
    StringJoin StringLength StringLower StringNGrams StringSplit StringSplitV2 StringStrip StringToHashBucket
    StringToHashBucketFast StringToHashBucketStrong StringToNumber StringUpper Sub Substr Sum Svd Tan Tanh TanhGrad
    TensorListConcat TensorListConcatLists TensorListConcatV2 TensorListElementShape TensorListFromTensor TensorListGather
    TensorListGetItem TensorListLength TensorListPopBack TensorListPushBack TensorListPushBackBatch TensorListReserve
    TensorListResize TensorListScatter TensorListScatterIntoExistingList TensorListScatterV2 TensorListSetItem TensorListSplit
    TensorListStack TensorMapErase TensorMapHasKey TensorMapInsert TensorMapLookup TensorMapSize TensorMapStackKeys
    TensorScatterAdd TensorScatterMax TensorScatterMin TensorScatterSub TensorScatterUpdate TensorStridedSliceUpdate Tile
    TileGrad Timestamp ToBool TopK TopKV2 Transpose TridiagonalMatMul TridiagonalSolve TruncateDiv TruncateMod TruncatedNormal
    UnicodeDecode UnicodeDecodeWithOffsets UnicodeEncode UnicodeScript UnicodeTranscode UniformCandidateSampler Unique
    UniqueV2 UniqueWithCounts UniqueWithCountsV2 Unpack UnravelIndex UnsortedSegmentJoin UnsortedSegmentMax UnsortedSegmentMin
    UnsortedSegmentProd UnsortedSegmentSum UpperBound VarHandleOp VarIsInitializedOp VariableShape Where Xdivy Xlog1py Xlogy
    ZerosLike Zeta
"""
SERVED = frozenset(_SERVED.split())
