"""Vectorized conversion between float16 and float32; numpy's own goes value by value and is slow for denormals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["narrow_to_half", "widen_half"]

#: The most values for which numpy's conversion is faster than several passes.
_FEW: Final = 1 << 12
#: Values per block, whose float32 form stays in the second-level cache between passes.
_BLOCK: Final = 1 << 16
#: The sign bit of a half, and its exponent and fraction bits, at their positions in a float.
_SIGN_AND_NUMBER: Final = np.array(-(1 << 31) | 0x7FFF << 13, np.int32)
_SHIFT: Final = np.array(13, np.int32)
_UNSIGNED_SHIFT: Final = np.array(13, np.uint32)
#: The factor from a float with a half's exponent bits to the half's value, for subnormal halves too.
_BIAS: Final = np.array(2.0 ** (127 - 15), np.float32)
#: The least bits of infinities and NaNs: of positive halves, and of negative ones.
_BEYOND: Final = 0x7C00
_BEYOND_BELOW: Final = 0xFC00

#: The magnitudes from which on a float is rounded to an infinite half.
_OVERFLOW: Final = 65520.0
#: Values per block of the way back, for which there are two scratch arrays.
_NARROW_BLOCK: Final = 1 << 13
#: A float's exponent bits, those of the smallest normal half, and the 13 bits that a half's fraction is shorter, as an exponent.
_EXPONENT: Final = np.array(0x7F800000, np.uint32)
_SMALLEST: Final = np.array(127 - 14 << 23, np.uint32)
_SHORTER: Final = np.array(13 << 23, np.uint32)
#: The distance from a float's sign bit to a half's, and that bit.
_SIGN_SHIFT: Final = np.array(16, np.uint32)
_HALF_SIGN: Final = np.array(0x8000, np.uint32)
#: The exponent field of the power of two that a value of exponent field 0 is added to, at a half's position.
_FIELD: Final = np.array((127 - 15 + 13 + 1) << 10 & 0xFFFF, np.uint16)

_largest = np.maximum.reduce
_lowest = np.minimum.reduce


def widen_half(source: NDArray[np.float16], target: NDArray[np.float32]) -> None:
    """Convert float16 `source` to float32 `target`; both arrays are contiguous and of the same size."""
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


def narrow_to_half(source: NDArray[np.float32], target: NDArray[np.float16]) -> None:
    """Round float32 `source` to float16 `target`, ties to even; both arrays are contiguous and of the same size.

    Adding the power of two whose last mantissa bit has the weight of the half's last bit makes the float addition round there;
    the sum's low bits are then the half's.
    """
    floats, halves = source.reshape(-1), target.reshape(-1)
    if floats.size < 4 * _FEW or not (_largest(floats) < _OVERFLOW and _lowest(floats) > -_OVERFLOW):  # both are false for NaN
        halves[...] = floats
        return
    bits, short = floats.view(np.uint32), halves.view(np.uint16)
    powers, sums = np.empty((2, _NARROW_BLOCK), np.uint32)
    for start in range(0, floats.size, _NARROW_BLOCK):
        value, bit, result = (array[start : start + _NARROW_BLOCK] for array in (floats, bits, short))
        power, total = powers[: value.size], sums[: value.size]
        rounded = total.view(np.float32)
        np.bitwise_and(bit, _EXPONENT, power)
        np.maximum(power, _SMALLEST, out=power)
        np.add(power, _SHORTER, power)
        np.absolute(value, rounded)
        np.add(rounded, power.view(np.float32), rounded)
        np.right_shift(power, _UNSIGNED_SHIFT, power)
        np.add(power, total, power)
        np.right_shift(bit, _SIGN_SHIFT, total)
        np.bitwise_and(total, _HALF_SIGN, total)
        np.add(power, total, power)
        np.copyto(result, power, "unsafe")
        np.subtract(result, _FIELD, result)
