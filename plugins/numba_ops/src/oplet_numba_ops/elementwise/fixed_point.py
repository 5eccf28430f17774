"""Fixed-point rescaling with both of the format's roundings, as one multiplication and one shift.

The two roundings divide by 2**31 and then by 2**s, each by adding a half and shifting. Nested floors of integer divisions are the
floor of one division, so both halves can be added at once. The second half is one less below zero, where halves go down.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oplet import charge
from oplet.kernels.requantization import Requantization, Rounding
from oplet_numba_ops.compiling.lazy import inlined
from oplet_numba_ops.compiling.memory import Array

__all__ = ["scaled", "scaling", "scaling_table"]

#: The numbers of a channel in `scaling_table`: its offset and the constants of `scaled`.
WORDS = 6


def scaling(multiplier: int, shift: int, left_shift: int = 0) -> tuple[int, ...]:
    """Return the constants for `scaled` that rescale by multiplier * 2**(shift + left_shift - 31).

    Args:
        multiplier: the fixed-point multiplier, 31 bits.
        shift: the exponent; positive to the left.
        left_shift: how far values are shifted left before they are multiplied.
    """
    left, right = left_shift + max(shift, 0), max(-shift, 0)
    half = (1 << (right - 1)) << 31 if right else 0
    below = -(1 << 31) if right else 0
    return multiplier, left, (1 << 30) + half, below, 31 + right


_inlined: Callable[..., Any] = inlined(error_model="numpy", inline="always")


@_inlined
def scaled(value: Any, multiplier: Any, left: Any, half: Any, below: Any, right: Any) -> Any:
    """Rescale an int32 value (widened to int64) by the constants of `scaling`."""
    return (((value * multiplier) << left) + half + ((value >> 63) & below)) >> right


def scaling_table(requantizer: Requantization, kind: np.dtype[Any]) -> Array | None:
    """Return a table with each channel's offset slot and rescaling constants; None if numbers are too large."""
    if not requantizer.fits(kind) or requantizer.rounding is Rounding.UP:
        return None
    if requantizer.rounding is Rounding.FLOAT:
        return np.stack([np.zeros(len(requantizer.factors)), requantizer.factors], axis=1)
    multipliers, shifts = (values.tolist() for values in requantizer.multipliers)
    wide = requantizer.rounding is Rounding.WIDE
    if wide and (requantizer.limit >= 2.0**46 or max(shifts) > 14 or min(shifts) < -31):
        return None
    charge(8 * WORDS * len(shifts))
    table = np.zeros((len(shifts), WORDS), np.int64)
    for channel, (multiplier, shift) in enumerate(zip(multipliers, shifts)):
        table[channel, 1:] = (multiplier, 0, 1 << (14 - shift), 0, 15 - shift) if wide else scaling(multiplier, shift)
    return table
