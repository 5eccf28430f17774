"""Rescaling for quantized ADD, SUB and MUL: from the two inputs' scales to the output's.

Numerics: tflite/kernels/internal/reference/integer_ops/add.h and mul.h
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from oplet.kernels.arrays import Array
from oplet.kernels.fixed_point import multiply_by_quantized_multiplier
from oplet.records import Row

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ProductScaling", "Share", "SumScaling"]


class Share(Row):
    """The rescaling of one input of ADD or SUB to a common scale: 2**-left_shift times twice the larger input scale.

    (value - zero_point) * 2**left_shift is scaled by multiplier * 2**(shift - 31).
    """

    zero_point: int
    left_shift: int
    multiplier: int
    shift: int

    def of(self, values: Array) -> NDArray[np.int32]:
        """Return the stored values, rescaled to the common scale, as int32."""
        shifted = (values.astype(np.int64) - self.zero_point) << self.left_shift
        return multiply_by_quantized_multiplier(shifted.astype(np.int32), self.multiplier, self.shift)


class SumScaling(Row):
    """Rescaling of ADD or SUB: the rescaled summands are added, scaled by multiplier * 2**(shift - 31) and clamped.

    Attributes:
        shares: the rescaling of each input.
        multiplier: the fixed-point factor of the sum, with `shift`.
        shift: the exponent of that factor.
        zero_point: the output's zero point.
        bounds: the smallest and largest output, after the fused activation.
    """

    shares: tuple[Share, Share]
    multiplier: int
    shift: int
    zero_point: int
    bounds: tuple[int, int]


class ProductScaling(Row):
    """Rescaling of MUL: (a - zero_point_a) * (b - zero_point_b) is scaled by multiplier * 2**(shift - 31) and clamped.

    Attributes:
        multiplier: the fixed-point factor of the product, with `shift`.
        shift: the exponent of that factor.
        bounds: the smallest and largest output, after the fused activation.
    """

    multiplier: int
    shift: int
    bounds: tuple[int, int]
