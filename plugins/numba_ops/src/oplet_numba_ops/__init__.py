"""Compiled kernels for hot built-in operators, which replace the numpy ones where they can.

Each operator is one module of `oplet_numba_ops.ops`, named like the operator in lower case, with its `REGISTRATION`. The module,
and with it numba, is imported when a model needs it.
"""

from __future__ import annotations

from oplet import MutableOpResolver, hookimpl
from oplet_builtin_ops import VERSIONS as BUILTIN_VERSIONS

#: Precedence: before the built-in kernels, after plugins that a user installs for the ops they add.
OPLET_TIER = "fast"

#: The operators that have a compiled kernel.
OPERATORS = (
    "ABS",
    "ADD",
    "ARG_MAX",
    "AVERAGE_POOL_2D",
    "BATCH_MATMUL",
    "CONV_2D",
    "CUMSUM",
    "DEPTHWISE_CONV_2D",
    "DEQUANTIZE",
    "DIV",
    "FULLY_CONNECTED",
    "GELU",
    "HARD_SWISH",
    "LEAKY_RELU",
    "LOGISTIC",
    "LOG_SOFTMAX",
    "LSTM",
    "MAXIMUM",
    "MAX_POOL_2D",
    "MEAN",
    "MINIMUM",
    "MUL",
    "NON_MAX_SUPPRESSION_V4",
    "NON_MAX_SUPPRESSION_V5",
    "PAD",
    "PRELU",
    "QUANTIZE",
    "RELU",
    "RELU6",
    "RELU_N1_TO_1",
    "RESIZE_BILINEAR",
    "RNN",
    "RSQRT",
    "SCATTER_ND",
    "SOFTMAX",
    "SQRT",
    "SQUARED_DIFFERENCE",
    "SUB",
    "SUM",
    "TANH",
    "TRANSPOSE",
    "UNIDIRECTIONAL_SEQUENCE_LSTM",
    "UNIDIRECTIONAL_SEQUENCE_RNN",
)

#: The custom operators that have a compiled kernel, and its module.
CUSTOM = {"TFLite_Detection_PostProcess": "tflite_detection_post_process"}

#: The versions of each that are served, first to last: those of the numpy kernel, to which nodes fall back.
VERSIONS: dict[str, tuple[int, int]] = {name: BUILTIN_VERSIONS[name] for name in OPERATORS}


@hookimpl
def register_ops(resolver: MutableOpResolver) -> None:
    """Register the operators; their modules are imported when they are first used."""
    for name, (first, last) in VERSIONS.items():
        resolver.add_builtin(name, f"oplet_numba_ops.ops.{name.lower()}:REGISTRATION", first, last)
    for name, module in CUSTOM.items():
        resolver.add_custom(name, f"oplet_numba_ops.ops.custom.{module}:REGISTRATION")
