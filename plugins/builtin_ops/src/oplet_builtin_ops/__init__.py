"""The built-in operators of the .tflite format, in numpy.

Each operator is one module of `oplet_builtin_ops.ops`, named like the operator in lower case, with its `REGISTRATION`; those of a
family stand together in the family's module, each under its own name (`FAMILIES`). A module is imported when a model needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oplet import hookimpl

if TYPE_CHECKING:  # a process that takes a model's plan from disk imports packages, but registers nothing
    from oplet import MutableOpResolver, WorkTable

#: Precedence: any other plugin's kernel goes before a built-in one.
OPLET_TIER = "builtin"

#: The versions of each operator that its kernel serves, first to last.
VERSIONS: dict[str, tuple[int, int]] = {
    "ABS": (1, 5),
    "ADD": (1, 6),
    "ADD_N": (1, 1),
    "ARG_MAX": (1, 3),
    "ARG_MIN": (1, 3),
    "ASSIGN_VARIABLE": (1, 1),
    "ATAN2": (1, 1),
    "AVERAGE_POOL_2D": (1, 3),
    "BATCH_MATMUL": (1, 4),
    "BATCH_TO_SPACE_ND": (1, 4),
    "BIDIRECTIONAL_SEQUENCE_LSTM": (1, 3),
    "BIDIRECTIONAL_SEQUENCE_RNN": (1, 3),
    "BITCAST": (1, 1),
    "BITWISE_XOR": (1, 1),
    "BROADCAST_ARGS": (1, 1),
    "BROADCAST_TO": (2, 4),
    "BUCKETIZE": (1, 1),
    "CALL": (1, 1),
    "CALL_ONCE": (1, 1),
    "CAST": (1, 9),
    "CEIL": (1, 1),
    "COMPLEX_ABS": (1, 1),
    "CONCATENATION": (1, 7),
    "CONV_2D": (1, 8),
    "CONV_3D": (1, 1),
    "CONV_3D_TRANSPOSE": (1, 1),
    "COS": (1, 2),
    "CUMSUM": (1, 1),
    "DENSIFY": (1, 1),
    "DEPTHWISE_CONV_2D": (1, 7),
    "DEPTH_TO_SPACE": (1, 2),
    "DEQUANTIZE": (1, 9),
    "DILATE": (1, 1),
    "DIV": (1, 2),
    "DYNAMIC_UPDATE_SLICE": (1, 6),
    "ELU": (1, 1),
    "EMBEDDING_LOOKUP": (1, 5),
    "EMBEDDING_LOOKUP_SPARSE": (1, 1),
    "EQUAL": (1, 5),
    "EXP": (1, 2),
    "EXPAND_DIMS": (1, 1),
    "FAKE_QUANT": (1, 2),
    "FILL": (1, 5),
    "FLOOR": (1, 1),
    "FLOOR_DIV": (1, 3),
    "FLOOR_MOD": (1, 2),
    "FULLY_CONNECTED": (1, 14),
    "GATHER": (1, 8),
    "GATHER_ND": (1, 6),
    "GELU": (1, 3),
    "GREATER": (1, 2),
    "GREATER_EQUAL": (1, 3),
    "HARD_SWISH": (1, 1),
    "HASHTABLE": (1, 1),
    "HASHTABLE_FIND": (1, 1),
    "HASHTABLE_IMPORT": (1, 1),
    "HASHTABLE_LOOKUP": (1, 1),
    "HASHTABLE_SIZE": (1, 1),
    "IF": (1, 1),
    "IMAG": (1, 1),
    "L2_NORMALIZATION": (1, 2),
    "L2_POOL_2D": (1, 1),
    "LEAKY_RELU": (1, 2),
    "LESS": (1, 3),
    "LESS_EQUAL": (1, 2),
    "LOCAL_RESPONSE_NORMALIZATION": (1, 1),
    "LOG": (1, 2),
    "LOGICAL_AND": (1, 1),
    "LOGICAL_NOT": (1, 1),
    "LOGICAL_OR": (1, 1),
    "LOGISTIC": (1, 3),
    "LOG_SOFTMAX": (1, 2),
    "LSH_PROJECTION": (1, 1),
    "LSTM": (1, 4),
    "MATRIX_DIAG": (1, 1),
    "MATRIX_SET_DIAG": (1, 1),
    "MAXIMUM": (1, 4),
    "MAX_POOL_2D": (1, 3),
    "MEAN": (1, 3),
    "MINIMUM": (1, 4),
    "MIRROR_PAD": (1, 3),
    "MUL": (1, 8),
    "MULTINOMIAL": (1, 1),
    "NEG": (1, 1),
    "NON_MAX_SUPPRESSION_V4": (1, 1),
    "NON_MAX_SUPPRESSION_V5": (1, 1),
    "NOT_EQUAL": (1, 4),
    "ONE_HOT": (1, 1),
    "PACK": (1, 5),
    "PAD": (1, 6),
    "PADV2": (1, 6),
    "POW": (1, 1),
    "PRELU": (1, 1),
    "QUANTIZE": (1, 6),
    "RANDOM_STANDARD_NORMAL": (1, 1),
    "RANDOM_UNIFORM": (1, 1),
    "RANGE": (1, 2),
    "RANK": (1, 1),
    "READ_VARIABLE": (1, 1),
    "REAL": (1, 1),
    "REDUCE_ALL": (1, 1),
    "REDUCE_ANY": (1, 1),
    "REDUCE_MAX": (1, 3),
    "REDUCE_MIN": (1, 3),
    "REDUCE_PROD": (1, 2),
    "REDUCE_WINDOW": (1, 1),
    "RELU": (1, 3),
    "RELU6": (1, 3),
    "RELU_0_TO_1": (1, 1),
    "RELU_N1_TO_1": (1, 1),
    "RESHAPE": (1, 1),
    "RESIZE_BILINEAR": (1, 4),
    "RESIZE_NEAREST_NEIGHBOR": (1, 4),
    "REVERSE_SEQUENCE": (1, 1),
    "REVERSE_V2": (1, 4),
    "RFFT2D": (1, 1),
    "RIGHT_SHIFT": (1, 1),
    "RNN": (1, 3),
    "ROUND": (1, 1),
    "RSQRT": (1, 3),
    "SCATTER_ND": (1, 1),
    "SEGMENT_SUM": (1, 1),
    "SELECT": (1, 4),
    "SELECT_V2": (1, 2),
    "SHAPE": (1, 1),
    "SIGN": (1, 2),
    "SIN": (1, 2),
    "SKIP_GRAM": (1, 1),
    "SLICE": (1, 8),
    "SOFTMAX": (1, 4),
    "SPACE_TO_BATCH_ND": (1, 4),
    "SPACE_TO_DEPTH": (1, 2),
    "SPARSE_TO_DENSE": (1, 3),
    "SPLIT": (1, 5),
    "SPLIT_V": (1, 3),
    "SQRT": (1, 2),
    "SQUARE": (1, 1),
    "SQUARED_DIFFERENCE": (1, 2),
    "SQUEEZE": (1, 2),
    "STABLEHLO_ABS": (1, 1),
    "STABLEHLO_ADD": (1, 1),
    "STABLEHLO_AND": (1, 1),
    "STABLEHLO_BROADCAST_IN_DIM": (1, 1),
    "STABLEHLO_CASE": (1, 1),
    "STABLEHLO_CBRT": (1, 1),
    "STABLEHLO_CLAMP": (1, 1),
    "STABLEHLO_COMPARE": (1, 1),
    "STABLEHLO_COMPOSITE": (1, 1),
    "STABLEHLO_CONCATENATE": (1, 1),
    "STABLEHLO_CONVERT": (1, 1),
    "STABLEHLO_CONVOLUTION": (1, 1),
    "STABLEHLO_COSINE": (1, 1),
    "STABLEHLO_CUSTOM_CALL": (1, 1),
    "STABLEHLO_DIVIDE": (1, 1),
    "STABLEHLO_DOT_GENERAL": (1, 1),
    "STABLEHLO_DYNAMIC_SLICE": (1, 1),
    "STABLEHLO_DYNAMIC_UPDATE_SLICE": (1, 1),
    "STABLEHLO_EXPONENTIAL": (1, 1),
    "STABLEHLO_FLOOR": (1, 1),
    "STABLEHLO_GATHER": (1, 1),
    "STABLEHLO_IOTA": (1, 1),
    "STABLEHLO_LOG": (1, 1),
    "STABLEHLO_LOGISTIC": (1, 1),
    "STABLEHLO_MAXIMUM": (1, 1),
    "STABLEHLO_MINIMUM": (1, 1),
    "STABLEHLO_MULTIPLY": (1, 1),
    "STABLEHLO_NEGATE": (1, 1),
    "STABLEHLO_OR": (1, 1),
    "STABLEHLO_PAD": (1, 1),
    "STABLEHLO_POWER": (1, 1),
    "STABLEHLO_REDUCE": (1, 1),
    "STABLEHLO_REDUCE_WINDOW": (1, 1),
    "STABLEHLO_REMAINDER": (1, 1),
    "STABLEHLO_RESHAPE": (1, 1),
    "STABLEHLO_RNG_BIT_GENERATOR": (1, 1),
    "STABLEHLO_RSQRT": (1, 1),
    "STABLEHLO_SCATTER": (1, 1),
    "STABLEHLO_SELECT": (1, 1),
    "STABLEHLO_SHIFT_LEFT": (1, 1),
    "STABLEHLO_SLICE": (1, 1),
    "STABLEHLO_SORT": (1, 1),
    "STABLEHLO_SUBTRACT": (1, 1),
    "STABLEHLO_TANH": (1, 1),
    "STABLEHLO_TRANSPOSE": (1, 1),
    "STABLEHLO_WHILE": (1, 1),
    "STRIDED_SLICE": (1, 8),
    "SUB": (1, 5),
    "SUM": (1, 2),
    "SVDF": (1, 4),
    "TANH": (1, 3),
    "TILE": (1, 3),
    "TOPK_V2": (1, 3),
    "TRANSPOSE": (1, 9),
    "TRANSPOSE_CONV": (1, 5),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (1, 4),
    "UNIDIRECTIONAL_SEQUENCE_RNN": (1, 3),
    "UNIQUE": (1, 1),
    "UNPACK": (1, 6),
    "UNSORTED_SEGMENT_MAX": (1, 1),
    "UNSORTED_SEGMENT_MIN": (1, 1),
    "UNSORTED_SEGMENT_PROD": (1, 1),
    "UNSORTED_SEGMENT_SUM": (1, 1),
    "VAR_HANDLE": (1, 1),
    "WHERE": (1, 2),
    "WHILE": (1, 1),
    "ZEROS_LIKE": (1, 1),
}

#: The modules that serve several operators each, and these; a registration is named like its operator.
FAMILIES: dict[str, str] = {
    "control.branches": "IF STABLEHLO_CASE STABLEHLO_COMPOSITE CALL",
    "control.hashtables": "HASHTABLE HASHTABLE_IMPORT HASHTABLE_FIND HASHTABLE_SIZE",
    "control.loops": "WHILE STABLEHLO_WHILE",
    "control.randoms": "RANDOM_UNIFORM RANDOM_STANDARD_NORMAL",
    "control.variables": "VAR_HANDLE ASSIGN_VARIABLE READ_VARIABLE",
    "elementwise.activations": "RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1",
    "elementwise.additive": "ADD SUB",
    "elementwise.comparison": "EQUAL NOT_EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL",
    "elementwise.complex_parts": "REAL IMAG COMPLEX_ABS",
    "elementwise.divisions": "FLOOR_DIV FLOOR_MOD",
    "elementwise.extremum": "MAXIMUM MINIMUM",
    "elementwise.functions": "ABS CEIL COS EXP FLOOR LOG LOGICAL_NOT NEG ROUND RSQRT SIGN SIN SQRT SQUARE",
    "elementwise.pairwise": "BITWISE_XOR LOGICAL_AND LOGICAL_OR",
    "elementwise.selection": "SELECT SELECT_V2",
    "elementwise.sigmoids": "LOGISTIC TANH",
    "elementwise.stablehlo_elementwise": (
        "STABLEHLO_ABS STABLEHLO_ADD STABLEHLO_AND STABLEHLO_CBRT STABLEHLO_COSINE STABLEHLO_DIVIDE "
        "STABLEHLO_EXPONENTIAL STABLEHLO_FLOOR STABLEHLO_LOG STABLEHLO_LOGISTIC STABLEHLO_MAXIMUM "
        "STABLEHLO_MINIMUM STABLEHLO_MULTIPLY STABLEHLO_NEGATE STABLEHLO_OR STABLEHLO_POWER STABLEHLO_REMAINDER "
        "STABLEHLO_RSQRT STABLEHLO_SHIFT_LEFT STABLEHLO_SUBTRACT STABLEHLO_TANH"
    ),
    "layers.convolutions_2d": "CONV_2D DEPTHWISE_CONV_2D",
    "layers.pooling": "AVERAGE_POOL_2D MAX_POOL_2D L2_POOL_2D",
    "recurrent.rnn": "RNN UNIDIRECTIONAL_SEQUENCE_RNN",
    "shaping.arg_min_max": "ARG_MAX ARG_MIN",
    "shaping.batch_blocks": "BATCH_TO_SPACE_ND SPACE_TO_BATCH_ND",
    "shaping.channel_blocks": "DEPTH_TO_SPACE SPACE_TO_DEPTH",
    "shaping.diagonals": "MATRIX_DIAG MATRIX_SET_DIAG",
    "shaping.packing": "PACK UNPACK",
    "shaping.padding": "PAD PADV2",
    "shaping.reduction": "REDUCE_ALL REDUCE_ANY REDUCE_MAX REDUCE_MIN",
    "shaping.segments": "SEGMENT_SUM UNSORTED_SEGMENT_SUM UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_MIN",
    "shaping.shape_constants": "SHAPE RANK",
    "shaping.stablehlo_shapes": (
        "STABLEHLO_BROADCAST_IN_DIM STABLEHLO_CONCATENATE STABLEHLO_DYNAMIC_SLICE STABLEHLO_DYNAMIC_UPDATE_SLICE "
        "STABLEHLO_IOTA STABLEHLO_RESHAPE STABLEHLO_SLICE STABLEHLO_TRANSPOSE"
    ),
    "suppression.non_max": "NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5",
}

#: The custom operators of LiteRT's own resolver, and the modules of `oplet_builtin_ops.ops.custom` that serve them.
CUSTOM: dict[str, str] = {
    "AudioSpectrogram": "audio_spectrogram",
    "Mfcc": "mfcc",
    "NumericVerify": "numeric_verify",
    "TFLite_Detection_PostProcess": "tflite_detection_post_process",
    "aeq.hadamard_rotation": "aeq_hadamard_rotation",
}

#: Composites, and the modules of `oplet_builtin_ops.ops.composites` that serve their version 0, which converters write.
COMPOSITES: dict[str, str] = {
    "odml.group_norm": "group_norm",
    "odml.rms_norm": "rms_norm",
    "odml.scaled_dot_product_attention": "scaled_dot_product_attention",
}


@hookimpl
def register_ops(resolver: MutableOpResolver) -> None:
    """Register the built-in, custom and composite operators (`VERSIONS`, `CUSTOM`, `COMPOSITES`) lazily: a module is imported at
    its operator's first use.
    """
    homes = {op: f"{module}:{op}" for module, ops in FAMILIES.items() for op in ops.split()}
    for op, (first, last) in VERSIONS.items():
        resolver.add_builtin(op, f"{__name__}.{homes.get(op) or f'ops.{op.lower()}:REGISTRATION'}", first, last)
    for name, module in CUSTOM.items():
        resolver.add_custom(name, f"{__name__}.ops.custom.{module}:REGISTRATION")
    for name, module in COMPOSITES.items():
        resolver.add_composite(name, f"{__name__}.ops.composites.{module}:REGISTRATION")


@hookimpl
def register_work(table: WorkTable) -> None:
    """Register the functions that count the operations and bytes of each operator for profiles."""
    from oplet_builtin_ops.work import add_counts

    add_counts(table)
