"""Compiled kernels for hot built-in operators, which take the place of the numpy ones.

Each operator is one module of `oplet_numba_ops.ops`, named like the operator in lower case and holding its `REGISTRATION`. It is
imported when a model needs it, and so is numba.
"""

from __future__ import annotations

from oplet import MutableOpResolver, hookimpl
from oplet_builtin_ops import VERSIONS as BUILTIN_VERSIONS

#: Before builtin kernels, behind those that a user installs for what they compute.
OPLET_TIER = "fast"

#: The operators that have a compiled kernel.
OPERATORS = (
    "ADD",
    "ARG_MAX",
    "AVERAGE_POOL_2D",
    "CONV_2D",
    "DEPTHWISE_CONV_2D",
    "DEQUANTIZE",
    "FULLY_CONNECTED",
    "HARD_SWISH",
    "LEAKY_RELU",
    "LOGISTIC",
    "LOG_SOFTMAX",
    "LSTM",
    "MAX_POOL_2D",
    "MEAN",
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
    "SCATTER_ND",
    "SOFTMAX",
    "SQUARED_DIFFERENCE",
    "SUB",
    "TRANSPOSE",
    "UNIDIRECTIONAL_SEQUENCE_LSTM",
    "UNIDIRECTIONAL_SEQUENCE_RNN",
)

#: The versions of each that are served, first to last: those of the numpy kernel, which serves what the compiled one does not.
VERSIONS: dict[str, tuple[int, int]] = {name: BUILTIN_VERSIONS[name] for name in OPERATORS}


@hookimpl
def register_ops(resolver: MutableOpResolver) -> None:
    """Bring the operators; their modules are imported late."""
    for name, (first, last) in VERSIONS.items():
        resolver.add_builtin(name, f"oplet_numba_ops.ops.{name.lower()}:REGISTRATION", first, last)
