"""The built-in operators of the .tflite format, in numpy.

Each operator is one module of `oplet_builtin_ops.ops`, named like the operator in lower case and holding its
`REGISTRATION`. It is imported when a model needs it.
"""

from __future__ import annotations

from oplet import MutableOpResolver, hookimpl

#: Others may replace what this package brings: any other plugin's kernel goes before a builtin one.
OPLET_TIER = "builtin"

#: The versions of each operator that its kernel serves, first to last.
VERSIONS: dict[str, tuple[int, int]] = {
    "ADD": (1, 6),
    "AVERAGE_POOL_2D": (1, 3),
    "CONCATENATION": (1, 7),
    "CONV_2D": (1, 8),
    "DENSIFY": (1, 1),
    "DEPTHWISE_CONV_2D": (1, 7),
    "DEPTH_TO_SPACE": (1, 2),
    "DEQUANTIZE": (1, 9),
    "EXPAND_DIMS": (1, 1),
    "FULLY_CONNECTED": (1, 14),
    "GATHER": (1, 8),
    "HARD_SWISH": (1, 1),
    "LEAKY_RELU": (1, 2),
    "LOGISTIC": (1, 3),
    "MAX_POOL_2D": (1, 3),
    "MEAN": (1, 3),
    "MUL": (1, 8),
    "PACK": (1, 5),
    "PAD": (1, 6),
    "PADV2": (1, 6),
    "PRELU": (1, 1),
    "QUANTIZE": (1, 6),
    "RELU": (1, 3),
    "RELU6": (1, 3),
    "RESHAPE": (1, 1),
    "RESIZE_BILINEAR": (1, 4),
    "RESIZE_NEAREST_NEIGHBOR": (1, 4),
    "SHAPE": (1, 1),
    "SLICE": (1, 8),
    "SOFTMAX": (1, 4),
    "SPACE_TO_DEPTH": (1, 2),
    "SPLIT": (1, 5),
    "SQUEEZE": (1, 2),
    "STRIDED_SLICE": (1, 8),
    "SUB": (1, 5),
    "SVDF": (1, 4),
    "TANH": (1, 3),
    "TRANSPOSE": (1, 9),
    "TRANSPOSE_CONV": (1, 5),
    "UNPACK": (1, 6),
}


@hookimpl
def register_ops(resolver: MutableOpResolver) -> None:
    """Claim every operator of `VERSIONS`; nothing is imported yet."""
    for op, (first, last) in VERSIONS.items():
        resolver.add_builtin(op, f"{__name__}.ops.{op.lower()}:REGISTRATION", first, last)
