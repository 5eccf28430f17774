"""float16 to float32 in a few vectorized passes; numpy converts value by value, and denormals slowly."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["widen_half"]

#: The most values for which numpy's conversion is faster than several passes.
_FEW: Final = 1 << 12
#: Values per block, whose float32 form stays in the second-level cache between passes.
_BLOCK: Final = 1 << 16
#: The sign bit of a half, and its exponent and fraction bits, at their positions in a float.
_SIGN_AND_NUMBER: Final = np.array(-(1 << 31) | 0x7FFF << 13, np.int32)
_SHIFT: Final = np.array(13, np.int32)
#: The factor from a float with a half's exponent bits to the half's value, for subnormal halves too.
_BIAS: Final = np.array(2.0 ** (127 - 15), np.float32)
#: The least bits of infinities and NaNs: of positive halves, and of negative ones.
_BEYOND: Final = 0x7C00
_BEYOND_BELOW: Final = 0xFC00

_largest = np.maximum.reduce


def widen_half(source: NDArray[np.float16], target: NDArray[np.float32]) -> None:
    """Copy half-precision values into single-precision ones; both arrays are contiguous and of the same size."""
    if target.size < _FEW:
        target[...] = source
        return
    halves, floats = source.reshape(-1), target.reshape(-1)
    bits, numbers = halves.view(np.int16), floats.view(np.int32)
    for start in range(0, floats.size, _BLOCK):
        block, number = floats[start : start + _BLOCK], numbers[start : start + _BLOCK]
        number[...] = bits[start : start + _BLOCK]
        np.left_shift(number, _SHIFT, number)
        np.bitwise_and(number, _SIGN_AND_NUMBER, number)
        np.multiply(block, _BIAS, block)
    if _largest(bits) >= _BEYOND or _largest(halves.view(np.uint16)) >= _BEYOND_BELOW:
        floats[...] = halves
