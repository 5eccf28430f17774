"""Fixed-point rescaling with both of the format's roundings, as one multiplication and one shift.

The format (.tflite's quantization) divides by 2**31 and then by 2**s, each time by adding a half and shifting. Nested floors of
integer divisions are the floor of one division, so both halves can be added at once. The second half is one less for values below
zero, which are rounded down if they lie halfway.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oplet import charge
from oplet.kernels.requantization import Requantization, Rounding
from oplet_compiled_ops.library.lazy import inlined
from oplet_compiled_ops.library.memory import Array

__all__ = ["scaled", "scaling", "scaling_table"]

#: The numbers of a channel in `scaling_table`: its offset and the constants of `scaled`.
WORDS = 6


def scaling(multiplier: int, shift: int, left_shift: int = 0) -> tuple[int, ...]:
    """Return the constants with which `scaled` multiplies a value by multiplier * 2**(shift + left_shift - 31).

    Args:
        multiplier: the fixed-point multiplier, 31 bits.
        shift: the exponent; positive to the left.
        left_shift: how many bits further to the left.
    """
    left, right = left_shift + max(shift, 0), max(-shift, 0)
    half = (1 << (right - 1)) << 31 if right else 0
    below = -(1 << 31) if right else 0
    return multiplier, left, (1 << 30) + half, below, 31 + right


_inlined: Callable[..., Any] = inlined(error_model="numpy", inline="always")


@_inlined
def scaled(value: Any, multiplier: Any, left: Any, half: Any, below: Any, right: Any) -> Any:
    """Rescale an int32 value (widened to int64) by the constants that `scaling` returns, which are the other arguments in that
    order.
    """
    return (((value * multiplier) << left) + half + ((value >> 63) & below)) >> right


def scaling_table(requantizer: Requantization) -> Array | None:
    """Return a table of the constants that rescale each channel's sums; None if the numbers of some channel are too large for it.

    A row is (0, factor) in float64 for layers that round once in floats, else (0, the constants of `scaled`...) in int64; the
    caller puts the channel's offset (bias) in place of the 0.

    Args:
        requantizer: the layer's requantization.
    """
    if requantizer.rounding is Rounding.UP:
        return None
    tame, limits = requantizer.is_tame, requantizer.limits
    if requantizer.rounding is Rounding.FLOAT:
        exact = bool((tame & (limits < 2.0**53)).all())
        return np.stack([np.zeros(len(limits)), requantizer.factors], axis=1) if exact else None
    multipliers, shifts = requantizer.multipliers
    wide = requantizer.rounding is Rounding.WIDE
    served = tame & (limits < 2.0**46) & (shifts <= 14) & (shifts >= -31) if wide else tame
    constant, outputs = (served, limits) if served.all() else requantizer.constants()
    if not (served | constant).all():
        return None
    charge(8 * WORDS * len(shifts))
    table = np.zeros((len(shifts), WORDS), np.int64)
    for channel, (multiplier, shift) in enumerate(zip(multipliers.tolist(), shifts.tolist())):
        if not served[channel]:
            table[channel, 1:] = 0, 0, (int(outputs[channel]) - requantizer.zero_point) << 1, 0, 1
        else:
            table[channel, 1:] = (multiplier, 0, 1 << (14 - shift), 0, 15 - shift) if wide else scaling(multiplier, shift)
    return table
