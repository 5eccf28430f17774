"""What becomes of the sums of a binary convolution: floats, int8 or bits.

The sums come doubled and from above: K less the sum of products of +1 and -1, where K is the number of bits of a filter.

Numerics: larq_compute_engine/core/bconv2d/output_transform.h and OneTimeSetup of larq_compute_engine/tflite/kernels/bconv2d.cc
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oplet import Tensor, TensorType
from oplet.kernels.arrays import Array
from oplet.schema.enums import ActivationFunctionType
from oplet_larq_ops.bits import pack

__all__ = ["ACTIVATIONS", "Line", "bounds", "line", "write_bits", "write_floats", "write_integers"]

#: The activations that clamp sums, and their bounds; None for none.
ACTIVATIONS: dict[ActivationFunctionType, tuple[int | None, int | None]] = {
    ActivationFunctionType.NONE: (None, None),
    ActivationFunctionType.RELU: (0, None),
    ActivationFunctionType.RELU_N1_TO_1: (-1, 1),
    ActivationFunctionType.RELU6: (0, 6),
}

#: Just below a half: what rounds halves away from zero before a truncation, and nothing else up.
_HALF = np.nextafter(np.float32(0.5), np.float32(0))


class Line(NamedTuple):
    """A linear function for each output channel, x * multiplier + offset, in float32."""

    multiplier: Array
    offset: Array


def bounds(activation: ActivationFunctionType, bits: int) -> tuple[int, int]:
    """Return the lowest and highest doubled Hamming distance that remain after the clamp by an activation.

    With K `bits` in a filter, a sum s of products of +1 and -1 has the doubled distance K - s.
    """
    low, high = ACTIVATIONS[activation]
    least = -bits if low is None else max(low, -bits)
    most = bits if high is None else min(high, bits)
    return bits - most, bits - least


def line(multiplier: Array, bias: Array, bits: int, output: Tensor) -> Line:
    """Return the linear function that maps doubled Hamming distances to output values (int8: quantized), from the model's own.

    Args:
        multiplier: the model's multiplier of each output channel, for sums of products of +1 and -1.
        bias: the model's bias of each output channel.
        bits: the number of bits of a filter.
        output: the output, whose scale and zero point are included if it is int8.
    """
    scale, zero = (float(output.scale), float(output.zero_point)) if output.type == TensorType.INT8 else (1.0, 0.0)
    factors = multiplier.astype(np.float64)
    with np.errstate(all="ignore"):
        return Line(
            (-factors / scale).astype(np.float32),
            ((bias.astype(np.float64) + bits * factors) / scale + zero).astype(np.float32),
        )


def write_floats(sums: Array, along: Line, output: Array) -> None:
    """Compute float32 outputs: `along` applied to doubled Hamming distances, which are clamped already."""
    np.copyto(output, sums, casting="unsafe")
    with np.errstate(all="ignore"):
        np.multiply(output, along.multiplier, output)
        np.add(output, along.offset, output)


def write_integers(sums: Array, along: Line, floats: Array, output: Array) -> None:
    """Compute int8 outputs from doubled Hamming distances: rounded to nearest, ties away from zero, saturated; NaN becomes -128.

    Args:
        sums: the doubled distances.
        along: the linear function that maps them to quantized values.
        floats: float32 scratch of the output's shape.
        output: receives the values.
    """
    write_floats(sums, along, floats)
    np.fmax(floats, np.float32(-128), out=floats)
    np.minimum(floats, np.float32(127), out=floats)
    np.add(floats, np.copysign(_HALF, floats), floats)
    np.copyto(output, floats, casting="unsafe")


def write_bits(sums: Array, thresholds: Array, output: Array) -> None:
    """Compute bit-packed outputs: a bit is 1 where half the doubled Hamming distance is above the channel's threshold."""
    np.copyto(output, pack(np.greater(sums, 2 * thresholds.astype(np.int64))))
