"""TensorFlow's operators that models with SELECT_TF_OPS use most, in numpy. A model names them `Flex` and the operator's name.

Each is one module of a family in `oplet_flex_ops.ops`, which is imported when a model needs it.
"""

from __future__ import annotations

from oplet import MutableOpResolver, hookimpl

#: The version of oplet's plugin API that this package is written for.
OPLET_API = "1"

#: The module of each operator, by family; several small operators may share a module: "module:NAME". All are of version 1.
OPS: dict[str, dict[str, str]] = {
    "arrays": {},
    "arithmetic": {
        "Abs": "unary:ABS", "Acos": "unary:ACOS", "Acosh": "unary:ACOSH", "Add": "binary:ADD", "AddN": "selection:ADD_N",
        "AddV2": "binary:ADD_V2", "All": "reductions:ALL", "Any": "reductions:ANY",
        "ApproximateEqual": "comparison:APPROXIMATE_EQUAL", "ArgMax": "reductions:ARG_MAX", "ArgMin": "reductions:ARG_MIN",
        "Asin": "unary:ASIN", "Asinh": "unary:ASINH", "Atan": "unary:ATAN", "Atan2": "binary:ATAN2", "Atanh": "unary:ATANH",
        "AvgPool": "pooling:AVG_POOL", "BatchMatMul": "products:BATCH_MATMUL", "BatchMatMulV2": "products:BATCH_MATMUL_V2",
        "BatchMatMulV3": "products:BATCH_MATMUL_V3", "BesselI0": "special:BESSEL_I0", "BesselI0e": "special:BESSEL_I0E",
        "BesselI1": "special:BESSEL_I1", "BesselI1e": "special:BESSEL_I1E", "BesselJ0": "special:BESSEL_J0",
        "BesselJ1": "special:BESSEL_J1", "BesselK0": "special:BESSEL_K0", "BesselK0e": "special:BESSEL_K0E",
        "BesselK1": "special:BESSEL_K1", "BesselK1e": "special:BESSEL_K1E", "BesselY0": "special:BESSEL_Y0",
        "BesselY1": "special:BESSEL_Y1", "Betainc": "special:BETAINC", "BiasAdd": "products:BIAS_ADD",
        "BiasAddV1": "products:BIAS_ADD_V1", "BitwiseAnd": "binary:BITWISE_AND", "BitwiseOr": "binary:BITWISE_OR",
        "BitwiseXor": "binary:BITWISE_XOR", "Cast": "selection:CAST", "Ceil": "unary:CEIL",
        "ClipByValue": "selection:CLIP_BY_VALUE", "Conv2D": "convolution:CONV2D", "Cos": "unary:COS", "Cosh": "unary:COSH",
        "Cumprod": "cumulative:CUMPROD", "Cumsum": "cumulative:CUMSUM",
        "CumulativeLogsumexp": "cumulative:CUMULATIVE_LOGSUMEXP", "Dawsn": "special:DAWSN",
        "DepthwiseConv2dNative": "convolution:DEPTHWISE_CONV2D_NATIVE", "Digamma": "special:DIGAMMA", "Div": "binary:DIV",
        "DivNoNan": "binary:DIV_NO_NAN", "Elu": "activations:ELU", "Equal": "comparison:EQUAL", "Erf": "special:ERF",
        "Erfc": "special:ERFC", "Erfinv": "special:ERFINV", "EuclideanNorm": "reductions:EUCLIDEAN_NORM", "Exp": "unary:EXP",
        "Expint": "special:EXPINT", "Expm1": "unary:EXPM1", "Floor": "unary:FLOOR", "FloorDiv": "binary:FLOOR_DIV",
        "FloorMod": "binary:FLOOR_MOD", "FresnelCos": "special:FRESNEL_COS", "FresnelSin": "special:FRESNEL_SIN",
        "FusedBatchNorm": "normalization:FUSED_BATCH_NORM", "FusedBatchNormV2": "normalization:FUSED_BATCH_NORM_V2",
        "FusedBatchNormV3": "normalization:FUSED_BATCH_NORM_V3", "Greater": "comparison:GREATER",
        "GreaterEqual": "comparison:GREATER_EQUAL", "Igamma": "special:IGAMMA", "Igammac": "special:IGAMMAC",
        "Inv": "unary:INV", "Invert": "unary:INVERT", "IsFinite": "unary:IS_FINITE", "IsInf": "unary:IS_INF",
        "IsNan": "unary:IS_NAN", "L2Loss": "reductions:L2_LOSS", "LRN": "softmax:LRN", "LeakyRelu": "activations:LEAKY_RELU",
        "LeftShift": "binary:LEFT_SHIFT", "Less": "comparison:LESS", "LessEqual": "comparison:LESS_EQUAL",
        "Lgamma": "special:LGAMMA", "Log": "unary:LOG", "Log1p": "unary:LOG1P", "LogSoftmax": "softmax:LOG_SOFTMAX",
        "LogicalAnd": "comparison:LOGICAL_AND", "LogicalNot": "unary:LOGICAL_NOT", "LogicalOr": "comparison:LOGICAL_OR",
        "MatMul": "products:MAT_MUL", "Max": "reductions:MAX", "MaxPool": "pooling:MAX_POOL",
        "MaxPoolV2": "pooling:MAX_POOL_V2", "Maximum": "binary:MAXIMUM", "Mean": "reductions:MEAN", "Min": "reductions:MIN",
        "Minimum": "binary:MINIMUM", "Mod": "binary:MOD", "Mul": "binary:MUL", "MulNoNan": "binary:MUL_NO_NAN",
        "Ndtri": "special:NDTRI", "Neg": "unary:NEG", "NextAfter": "binary:NEXT_AFTER", "NotEqual": "comparison:NOT_EQUAL",
        "Polygamma": "special:POLYGAMMA", "PopulationCount": "unary:POPULATION_COUNT", "Pow": "binary:POW",
        "Prod": "reductions:PROD", "RealDiv": "binary:REAL_DIV", "Reciprocal": "unary:RECIPROCAL", "Relu": "activations:RELU",
        "Relu6": "activations:RELU6", "RightShift": "binary:RIGHT_SHIFT", "Rint": "unary:RINT", "Round": "unary:ROUND",
        "Rsqrt": "unary:RSQRT", "Selu": "activations:SELU", "Sigmoid": "unary:SIGMOID", "Sign": "unary:SIGN",
        "Sin": "unary:SIN", "Sinh": "unary:SINH", "Softmax": "softmax:SOFTMAX", "Softplus": "activations:SOFTPLUS",
        "Softsign": "activations:SOFTSIGN", "Spence": "special:SPENCE", "Sqrt": "unary:SQRT", "Square": "unary:SQUARE",
        "SquaredDifference": "binary:SQUARED_DIFFERENCE", "Sub": "binary:SUB", "Sum": "reductions:SUM", "Tan": "unary:TAN",
        "Tanh": "unary:TANH", "TruncateDiv": "binary:TRUNCATE_DIV", "TruncateMod": "binary:TRUNCATE_MOD",
        "Xdivy": "binary:XDIVY", "Xlog1py": "binary:XLOG1PY", "Xlogy": "binary:XLOGY", "Zeta": "special:ZETA",
    },
    "gradients": {
        "AvgPoolGrad": "pools:AVG_POOL_GRAD", "BiasAddGrad": "layers:BIAS_ADD_GRAD",
        "Conv2DBackpropFilter": "layers:CONV2D_BACKPROP_FILTER", "Conv2DBackpropInput": "layers:CONV2D_BACKPROP_INPUT",
        "DepthwiseConv2dNativeBackpropFilter": "layers:DEPTHWISE_CONV2D_NATIVE_BACKPROP_FILTER",
        "DepthwiseConv2dNativeBackpropInput": "layers:DEPTHWISE_CONV2D_NATIVE_BACKPROP_INPUT",
        "EluGrad": "elementwise:ELU_GRAD", "FusedBatchNormGrad": "normalization:FUSED_BATCH_NORM_GRAD",
        "FusedBatchNormGradV2": "normalization:FUSED_BATCH_NORM_GRAD_V2",
        "FusedBatchNormGradV3": "normalization:FUSED_BATCH_NORM_GRAD_V3", "InvGrad": "elementwise:INV_GRAD",
        "LRNGrad": "normalization:LRN_GRAD", "LeakyReluGrad": "elementwise:LEAKY_RELU_GRAD",
        "MaxPoolGrad": "pools:MAX_POOL_GRAD", "MaxPoolGradV2": "pools:MAX_POOL_GRAD_V2",
        "MaxPoolGradWithArgmax": "pools:MAX_POOL_GRAD_WITH_ARGMAX", "ReciprocalGrad": "elementwise:RECIPROCAL_GRAD",
        "Relu6Grad": "elementwise:RELU6_GRAD", "ReluGrad": "elementwise:RELU_GRAD", "RsqrtGrad": "elementwise:RSQRT_GRAD",
        "SeluGrad": "elementwise:SELU_GRAD", "SigmoidGrad": "elementwise:SIGMOID_GRAD",
        "SoftmaxCrossEntropyWithLogits": "losses:SOFTMAX_CROSS_ENTROPY_WITH_LOGITS",
        "SoftplusGrad": "elementwise:SOFTPLUS_GRAD", "SoftsignGrad": "elementwise:SOFTSIGN_GRAD",
        "SparseSoftmaxCrossEntropyWithLogits": "losses:SPARSE_SOFTMAX_CROSS_ENTROPY_WITH_LOGITS",
        "SqrtGrad": "elementwise:SQRT_GRAD", "TanhGrad": "elementwise:TANH_GRAD",
    },
    "images": {},
    "linalg": {
        "BandedTriangularSolve": "solving:BANDED_TRIANGULAR_SOLVE", "BatchCholesky": "decompositions:BATCH_CHOLESKY",
        "BatchCholeskyGrad": "decompositions:BATCH_CHOLESKY_GRAD",
        "BatchMatrixDeterminant": "functions:BATCH_MATRIX_DETERMINANT", "BatchMatrixDiag": "diagonals:BATCH_MATRIX_DIAG",
        "BatchMatrixDiagPart": "diagonals:BATCH_MATRIX_DIAG_PART", "BatchMatrixInverse": "solving:BATCH_MATRIX_INVERSE",
        "BatchMatrixSetDiag": "diagonals:BATCH_MATRIX_SET_DIAG", "BatchMatrixSolve": "solving:BATCH_MATRIX_SOLVE",
        "BatchMatrixSolveLs": "solving:BATCH_MATRIX_SOLVE_LS",
        "BatchMatrixTriangularSolve": "solving:BATCH_MATRIX_TRIANGULAR_SOLVE",
        "BatchSelfAdjointEig": "decompositions:BATCH_SELF_ADJOINT_EIG",
        "BatchSelfAdjointEigV2": "decompositions:BATCH_SELF_ADJOINT_EIG_V2", "BatchSvd": "decompositions:BATCH_SVD",
        "Cholesky": "decompositions:CHOLESKY", "CholeskyGrad": "decompositions:CHOLESKY_GRAD", "Cross": "functions:CROSS",
        "Eig": "decompositions:EIG", "Einsum": "einsum:EINSUM", "LogMatrixDeterminant": "functions:LOG_MATRIX_DETERMINANT",
        "Lu": "decompositions:LU", "MatrixBandPart": "diagonals:MATRIX_BAND_PART",
        "MatrixDeterminant": "functions:MATRIX_DETERMINANT", "MatrixDiag": "diagonals:MATRIX_DIAG",
        "MatrixDiagPart": "diagonals:MATRIX_DIAG_PART", "MatrixDiagPartV2": "diagonals:MATRIX_DIAG_PART_V2",
        "MatrixDiagPartV3": "diagonals:MATRIX_DIAG_PART_V3", "MatrixDiagV2": "diagonals:MATRIX_DIAG_V2",
        "MatrixDiagV3": "diagonals:MATRIX_DIAG_V3", "MatrixExponential": "functions:MATRIX_EXPONENTIAL",
        "MatrixInverse": "solving:MATRIX_INVERSE", "MatrixLogarithm": "functions:MATRIX_LOGARITHM",
        "MatrixSetDiag": "diagonals:MATRIX_SET_DIAG", "MatrixSetDiagV2": "diagonals:MATRIX_SET_DIAG_V2",
        "MatrixSetDiagV3": "diagonals:MATRIX_SET_DIAG_V3", "MatrixSolve": "solving:MATRIX_SOLVE",
        "MatrixSolveLs": "solving:MATRIX_SOLVE_LS", "MatrixSquareRoot": "functions:MATRIX_SQUARE_ROOT",
        "MatrixTriangularSolve": "solving:MATRIX_TRIANGULAR_SOLVE", "Qr": "decompositions:QR",
        "SelfAdjointEig": "decompositions:SELF_ADJOINT_EIG", "SelfAdjointEigV2": "decompositions:SELF_ADJOINT_EIG_V2",
        "Svd": "decompositions:SVD", "TridiagonalMatMul": "solving:TRIDIAGONAL_MAT_MUL",
        "TridiagonalSolve": "solving:TRIDIAGONAL_SOLVE",
    },
    "lookup": {},
    "ragged": {},
    "random": {
        "Multinomial": "stateful:MULTINOMIAL", "RandomShuffle": "stateful:RANDOM_SHUFFLE",
        "RandomStandardNormal": "stateful:RANDOM_STANDARD_NORMAL", "RandomUniform": "stateful:RANDOM_UNIFORM",
        "RandomUniformInt": "stateful:RANDOM_UNIFORM_INT", "StatelessMultinomial": "stateless:STATELESS_MULTINOMIAL",
        "StatelessRandomGetAlg": "stateless:STATELESS_RANDOM_GET_ALG",
        "StatelessRandomGetKeyCounter": "stateless:STATELESS_RANDOM_GET_KEY_COUNTER",
        "StatelessRandomGetKeyCounterAlg": "stateless:STATELESS_RANDOM_GET_KEY_COUNTER_ALG",
        "StatelessRandomNormal": "stateless:STATELESS_RANDOM_NORMAL",
        "StatelessRandomNormalV2": "stateless:STATELESS_RANDOM_NORMAL_V2",
        "StatelessRandomUniform": "stateless:STATELESS_RANDOM_UNIFORM",
        "StatelessRandomUniformFullInt": "stateless:STATELESS_RANDOM_UNIFORM_FULL_INT",
        "StatelessRandomUniformFullIntV2": "stateless:STATELESS_RANDOM_UNIFORM_FULL_INT_V2",
        "StatelessRandomUniformInt": "stateless:STATELESS_RANDOM_UNIFORM_INT",
        "StatelessRandomUniformIntV2": "stateless:STATELESS_RANDOM_UNIFORM_INT_V2",
        "StatelessRandomUniformV2": "stateless:STATELESS_RANDOM_UNIFORM_V2", "StatelessShuffle": "stateless:STATELESS_SHUFFLE",
        "StatelessTruncatedNormal": "stateless:STATELESS_TRUNCATED_NORMAL",
        "StatelessTruncatedNormalV2": "stateless:STATELESS_TRUNCATED_NORMAL_V2", "TruncatedNormal": "stateful:TRUNCATED_NORMAL",
    },
    "sequences": {},
    "signal": {
        "Angle": "complex_parts:ANGLE", "AudioSpectrogram": "audio:AUDIO_SPECTROGRAM", "Complex": "complex_parts:COMPLEX",
        "ComplexAbs": "complex_parts:COMPLEX_ABS", "Conj": "complex_parts:CONJ", "DecodeWav": "wav:DECODE_WAV",
        "EncodeWav": "wav:ENCODE_WAV", "FFT": "fourier:FFT", "FFT2D": "fourier:FFT_2D", "FFT3D": "fourier:FFT_3D",
        "IFFT": "fourier:IFFT", "IFFT2D": "fourier:IFFT_2D", "IFFT3D": "fourier:IFFT_3D", "IRFFT": "fourier:IRFFT",
        "IRFFT2D": "fourier:IRFFT_2D", "IRFFT3D": "fourier:IRFFT_3D", "Imag": "complex_parts:IMAG", "Mfcc": "audio:MFCC",
        "RFFT": "fourier:RFFT", "RFFT2D": "fourier:RFFT_2D", "RFFT3D": "fourier:RFFT_3D", "Real": "complex_parts:REAL",
    },
    "sparse": {},
    "strings": {},
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
}  # fmt: skip

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
