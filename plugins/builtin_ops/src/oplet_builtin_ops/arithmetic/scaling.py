"""Fixed-point rounding of `oplet.kernels` done in place on scratch memory, for kernels that must not allocate."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from oplet import Tensor, ensure
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.fixed_point import clip

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ensure_zero_point_is_zero", "power_of_two_exponent", "rescaler", "rounding_shift"]

# Arrays of one element have the same type promotion in all versions of numpy; scalars have not.
_HALF: Final = np.array([1 << 30], np.int64)
_31: Final = np.array([31], np.int64)


def rounding_shift(values: Array, signs: Array, exponent: int) -> Thunk:
    """Return a function that divides `values` by 2**exponent in place, to nearest, ties away from zero; `signs` is scratch."""
    if exponent <= 0:
        return _nothing
    bits = 8 * values.itemsize - 1
    exponent = min(exponent, bits)
    sign_bit, amount = np.array([bits], values.dtype), np.array([exponent], values.dtype)
    half = np.array([1 << (exponent - 1)], values.dtype)

    def run() -> None:
        np.right_shift(values, sign_bit, signs)
        np.add(values, signs, values)
        np.add(values, half, values)
        np.right_shift(values, amount, values)

    return run


def rescaler(
    values: NDArray[np.int32],
    wide: NDArray[np.int64],
    scratch: NDArray[np.int64],
    multiplier: int,
    shift: int,
    zero_point: int,
    bounds: tuple[int, int],
    output: Array,
) -> Thunk:
    """Return a function: output = values * multiplier * 2**(shift - 31) + zero_point, clamped to `bounds`.

    All arrays are flat and of one size; `wide` and `scratch` are scratch, and `values` is overwritten if `shift` is positive.
    """
    factor, offset = np.array([multiplier], np.int64), np.array([zero_point], np.int64)
    low, high = (np.array([bound], np.int64) for bound in bounds)
    left = np.array([max(shift, 0) & 31], np.int32)
    divide = rounding_shift(wide, scratch, -shift)

    def run() -> None:
        if shift > 0:
            np.left_shift(values, left, values)
        np.multiply(values, factor, wide)
        np.add(wide, _HALF, wide)
        np.right_shift(wide, _31, wide)
        divide()
        np.add(wide, offset, wide)
        clip(wide, low, high, wide)
        output[...] = wide

    return run


def power_of_two_exponent(scale: float) -> int | None:
    """Return e if `scale` is 2**e within LiteRT's tolerance, else None."""
    if not scale > 0:
        return None
    exponent = math.log2(scale)
    nearest = math.floor(exponent + 0.5)
    return nearest if abs(exponent - nearest) < 1e-3 else None


def ensure_zero_point_is_zero(*tensors: Tensor) -> None:
    """Check that the zero point of each tensor is 0, as it must be for int16.

    Raises:
        EnsureError: a tensor has another zero point.
    """
    for tensor in tensors:
        ensure(tensor.zero_point == 0, f"{tensor} has zero point {tensor.zero_point}; an int16 tensor must have 0 here.")


def _nothing() -> None:
    pass
