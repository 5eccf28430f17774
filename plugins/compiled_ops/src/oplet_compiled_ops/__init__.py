"""Compiled kernels for hot operators; each replaces the numpy kernel for the nodes that it supports.

Each operator is one module of `oplet_compiled_ops.ops`, named like the operator in lower case, with its `REGISTRATION`; those of a
family stand in one module, each under its own name (`FAMILIES`). A module is imported when a model needs it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from oplet import hookimpl
from oplet_builtin_ops import VERSIONS as BUILTIN_VERSIONS

if TYPE_CHECKING:  # a process that takes a model's plan from disk imports this package, and registers nothing
    from oplet import MutableOpResolver

#: Precedence: before the built-in kernels, after plugins that a user installs for the ops they add.
OPLET_TIER = "fast"

#: The operators that have a compiled kernel.
OPERATORS = (
    "ABS ADD ADD_N ARG_MAX ARG_MIN AVERAGE_POOL_2D BATCH_MATMUL BIDIRECTIONAL_SEQUENCE_LSTM BIDIRECTIONAL_SEQUENCE_RNN "
    "BITWISE_XOR CAST CEIL CONCATENATION CONV_2D COS CUMSUM DEPTHWISE_CONV_2D DEQUANTIZE DIV DYNAMIC_UPDATE_SLICE ELU "
    "EMBEDDING_LOOKUP EQUAL EXP FLOOR FLOOR_DIV FLOOR_MOD FULLY_CONNECTED GATHER GATHER_ND GELU GREATER GREATER_EQUAL "
    "HARD_SWISH L2_NORMALIZATION LEAKY_RELU LESS LESS_EQUAL LOCAL_RESPONSE_NORMALIZATION LOG LOGICAL_AND LOGICAL_NOT "
    "LOGICAL_OR LOGISTIC LOG_SOFTMAX LSTM MAXIMUM MAX_POOL_2D MEAN MINIMUM MUL MULTINOMIAL NEG NON_MAX_SUPPRESSION_V4 "
    "NON_MAX_SUPPRESSION_V5 NOT_EQUAL ONE_HOT PAD PRELU QUANTIZE RANDOM_STANDARD_NORMAL RANDOM_UNIFORM REDUCE_ALL "
    "REDUCE_ANY REDUCE_MAX REDUCE_MIN REDUCE_PROD RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1 RESIZE_BILINEAR RIGHT_SHIFT RNN ROUND "
    "RSQRT SCATTER_ND SELECT SELECT_V2 SIGN SIN SLICE SOFTMAX SQRT SQUARE SQUARED_DIFFERENCE STABLEHLO_RNG_BIT_GENERATOR "
    "STRIDED_SLICE SUB SUM TANH TOPK_V2 TRANSPOSE TRANSPOSE_CONV UNIDIRECTIONAL_SEQUENCE_LSTM UNIDIRECTIONAL_SEQUENCE_RNN"
)

#: The modules of `oplet_compiled_ops.ops` that serve several operators each, and these; a registration is named like its operator.
FAMILIES: dict[str, str] = {
    "comparisons": "EQUAL NOT_EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL",
    "convolutions_2d": "CONV_2D DEPTHWISE_CONV_2D",
    "divisions": "FLOOR_DIV FLOOR_MOD",
    "extrema": "MAXIMUM MINIMUM",
    "functions": "ABS CEIL COS EXP FLOOR LOG LOGICAL_NOT NEG ROUND RSQRT SIGN SIN SQRT SQUARE",
    "logic": "BITWISE_XOR LOGICAL_AND LOGICAL_OR",
    "pooling": "AVERAGE_POOL_2D MAX_POOL_2D",
    "reductions": "REDUCE_ALL REDUCE_ANY REDUCE_MAX REDUCE_MIN",
    "relus": "RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1",
    "rnns": "RNN UNIDIRECTIONAL_SEQUENCE_RNN",
    "selections": "SELECT SELECT_V2",
    "sigmoids": "LOGISTIC TANH",
    "sums": "ADD SUB",
    "suppression": "NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5",
}

#: The custom operators that have a compiled kernel: its module, and the first and last version that it serves.
CUSTOM = {"TFLite_Detection_PostProcess": ("tflite_detection_post_process", 1, 1)}
#: The composites that have a compiled kernel, and its module.
COMPOSITES = {"odml.rms_norm": "rms_norm"}
#: The same of those whose numpy kernels are in other packages, where these are installed, by the package's module.
ELSEWHERE = {
    "oplet_larq_ops": {"LceBconv2d": ("lcebconv2d", 1, 1)},
    "oplet_mediapipe_ops": {
        "Convolution2DTransposeBias": ("convolution_2d_transpose_bias", 1, 1),
        "Landmarks2TransformMatrix": ("landmarks_2_transform_matrix", 2, 2),
        "TransformLandmarks": ("transform_landmarks", 1, 2),
        "TransformTensor": ("transform_tensor_bilinear", 1, 1),
        "TransformTensorBilinear": ("transform_tensor_bilinear", 1, 2),
    },
}

#: The versions of each that are served, first to last: those of the numpy kernel, to which nodes fall back.
VERSIONS: dict[str, tuple[int, int]] = {name: BUILTIN_VERSIONS[name] for name in OPERATORS.split()}


@hookimpl
def register_ops(resolver: MutableOpResolver) -> None:
    """Register the compiled kernels as "module:NAME", so that each module is imported at its operator's first use."""
    homes = {name: f"{module}:{name}" for module, names in FAMILIES.items() for name in names.split()}
    for name, (first, last) in VERSIONS.items():
        resolver.add_builtin(name, f"oplet_compiled_ops.ops.{homes.get(name) or f'{name.lower()}:REGISTRATION'}", first, last)
    for operators in (CUSTOM, *(theirs for package, theirs in ELSEWHERE.items() if _is_installed(package))):
        for name, (module, first, last) in operators.items():
            resolver.add_custom(name, f"oplet_compiled_ops.ops.custom.{module}:REGISTRATION", first, last)
    for name, module in COMPOSITES.items():
        resolver.add_composite(name, f"oplet_compiled_ops.ops.composites.{module}:REGISTRATION")


def _is_installed(package: str) -> bool:
    """Return whether a package can be imported; without importlib.util, which takes long to import itself."""
    finders = (finder.find_spec for finder in sys.meta_path if hasattr(finder, "find_spec"))
    return package in sys.modules or any(find(package, None) for find in finders)
