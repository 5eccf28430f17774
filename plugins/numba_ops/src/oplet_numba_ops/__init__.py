"""Compiled kernels for hot built-in operators, which replace the numpy ones where they can.

Each operator is one module of `oplet_numba_ops.ops`, named like the operator in lower case, with its `REGISTRATION`. The module,
and with it numba, is imported when a model needs it.
"""

from __future__ import annotations

from oplet import MutableOpResolver, hookimpl

#: Precedence: before the built-in kernels, after plugins that a user installs for the ops they add.
OPLET_TIER = "fast"

#: The versions of each operator that are served, first to last: those of the numpy kernel, to which nodes fall back.
VERSIONS: dict[str, tuple[int, int]] = {
    "ADD": (1, 6),
    "ARG_MAX": (1, 3),
    "AVERAGE_POOL_2D": (1, 3),
    "CONV_2D": (1, 8),
    "DEPTHWISE_CONV_2D": (1, 7),
    "DEQUANTIZE": (1, 9),
    "FULLY_CONNECTED": (1, 14),
    "HARD_SWISH": (1, 1),
    "LEAKY_RELU": (1, 2),
    "LOGISTIC": (1, 3),
    "LOG_SOFTMAX": (1, 2),
    "LSTM": (1, 4),
    "MAX_POOL_2D": (1, 3),
    "MEAN": (1, 3),
    "MUL": (1, 8),
    "NON_MAX_SUPPRESSION_V4": (1, 1),
    "NON_MAX_SUPPRESSION_V5": (1, 1),
    "PAD": (1, 6),
    "PRELU": (1, 1),
    "QUANTIZE": (1, 6),
    "RELU": (1, 3),
    "RELU6": (1, 3),
    "RELU_N1_TO_1": (1, 1),
    "RESIZE_BILINEAR": (1, 4),
    "RNN": (1, 3),
    "SCATTER_ND": (1, 1),
    "SOFTMAX": (1, 4),
    "SQUARED_DIFFERENCE": (1, 2),
    "SUB": (1, 5),
    "TRANSPOSE": (1, 9),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (1, 4),
    "UNIDIRECTIONAL_SEQUENCE_RNN": (1, 3),
}


@hookimpl
def register_ops(resolver: MutableOpResolver) -> None:
    """Register the operators; their modules are imported when they are first used."""
    for name, (first, last) in VERSIONS.items():
        resolver.add_builtin(name, f"oplet_numba_ops.ops.{name.lower()}:REGISTRATION", first, last)
