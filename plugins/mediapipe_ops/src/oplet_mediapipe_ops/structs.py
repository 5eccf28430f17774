"""Custom options stored as a C struct of int32, as MediaPipe's convolution and pooling ops have them.

The structs are TfLiteTransposeConvParams and TfLitePoolParams of tflite/core/c/builtin_op_data.h.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from oplet import Node, ensure
from oplet.schema.enums import ActivationFunctionType, Padding

__all__ = ["PoolParams", "TransposeConvParams", "pool_params", "transpose_conv_params"]

_PADDINGS = {1: Padding.SAME, 2: Padding.VALID}


class TransposeConvParams(NamedTuple):
    """Options of Convolution2DTransposeBias; its fused activation is always none."""

    padding: Padding
    strides: tuple[int, int]  #: down, across


class PoolParams(NamedTuple):
    """Options of the two pooling ops."""

    padding: Padding
    strides: tuple[int, int]  #: down, across
    window: tuple[int, int]  #: height, width
    activation: ActivationFunctionType


def transpose_conv_params(node: Node) -> TransposeConvParams:
    """Read and check the options of a transposed convolution."""
    padding, stride_width, stride_height = _int32s(node, 3)
    _ensure_positive("strides", stride_height, stride_width)
    return TransposeConvParams(_padding(padding), (stride_height, stride_width))


def pool_params(node: Node) -> PoolParams:
    """Read and check the options of a pooling op."""
    padding, stride_width, stride_height, width, height, activation = _int32s(node, 6)
    _ensure_positive("strides", stride_height, stride_width)
    _ensure_positive("window", height, width)
    ensure(
        activation in ActivationFunctionType._value2member_map_,
        f"the custom options ask for the fused activation {activation}, which there is not.",
    )
    return PoolParams(_padding(padding), (stride_height, stride_width), (height, width), ActivationFunctionType(activation))


def _int32s(node: Node, count: int) -> tuple[int, ...]:
    """Read the first `count` integers of custom options that are a C struct of int32.

    Raises:
        EnsureError: the options are shorter.
    """
    options = node.custom_options
    ensure(
        len(options) >= 4 * count,
        lambda: f"the custom options have {len(options)} bytes; {node.op_name} reads {count} integers of 4 bytes from them.",
    )
    return struct.unpack_from(f"<{count}i", options)


def _padding(value: int) -> Padding:
    ensure(value in _PADDINGS, f"the custom options have the padding {value}; 1 is SAME and 2 is VALID.")
    return _PADDINGS[value]


def _ensure_positive(what: str, down: int, across: int) -> None:
    ensure(down > 0 and across > 0, f"the {what} in the custom options are {down} x {across}; they must be above zero.")
