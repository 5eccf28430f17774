"""Maps from float32 to float32 (HARD_SWISH, clamps), and to and from quantized numbers, element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oplet_compiled_ops.library.kernels import kernel
from oplet_compiled_ops.library.lazy import inlined

__all__ = ["CLAMP", "CLAMP_OVER", "HARD_SWISH", "HARD_SWISH_OVER"]

_ZERO, _THREE, _SIX, _SIXTH = np.float32(0), np.float32(3), np.float32(6), np.float32(1 / 6)
#: The largest float32 below 0.5: adding it before truncation rounds halves away from zero, and, unlike 0.5, does not round
#: 0.49999997 up.
_BELOW_HALF = np.nextafter(np.float32(0.5), np.float32(0))


_inlined: Callable[..., Any] = inlined(error_model="numpy", boundscheck=False)


@_inlined
def _hard_swish(value):  # type: ignore[no-untyped-def]
    gate = value + _THREE
    gate = _ZERO if gate < _ZERO else gate
    gate = _SIX if gate > _SIX else gate
    return gate * _SIXTH * value


@_inlined
def _clamped(value, low, high):  # type: ignore[no-untyped-def]
    # Both comparisons are false for NaN, which is kept, and so is -0.0.
    value = low if value < low else value
    return high if value > high else value


@kernel("void(f4[::1], f4[::1])")
def HARD_SWISH(x, out):  # type: ignore[no-untyped-def]
    """Compute out = x * min(max(x + 3, 0), 6) / 6 element by element; NaN stays NaN."""
    for i in range(out.size):
        out[i] = _hard_swish(x[i])


@kernel("void(f4[::1])")
def HARD_SWISH_OVER(out):  # type: ignore[no-untyped-def]
    """Compute out = out * min(max(out + 3, 0), 6) / 6 in place."""
    for i in range(out.size):
        out[i] = _hard_swish(out[i])


@kernel("void(f4[::1], f4[::1], f4, f4)")
def CLAMP(x, out, low, high):  # type: ignore[no-untyped-def]
    """Compute out = min(max(x, low), high) element by element; NaN stays NaN, and -0.0 stays -0.0."""
    for i in range(out.size):
        out[i] = _clamped(x[i], low, high)


@kernel("void(f4[::1], f4, f4)")
def CLAMP_OVER(out, low, high):  # type: ignore[no-untyped-def]
    """Compute out = min(max(out, low), high) in place."""
    for i in range(out.size):
        out[i] = _clamped(out[i], low, high)


def _quantize(x, out, scale, zero_point, lowest, highest, limit, beyond):  # type: ignore[no-untyped-def]
    zero = np.int32(zero_point)
    for i in range(out.size):
        steps = x[i] / scale
        # From the limit on, and for NaN, the result is another value.
        steps = steps if steps < limit else beyond
        steps = steps if steps < highest else highest
        steps = lowest if steps < lowest else steps
        half = -_BELOW_HALF if steps < _ZERO else _BELOW_HALF
        out[i] = np.int32(steps + half) + zero


def _dequantize(x, out, scale, zero_point):  # type: ignore[no-untyped-def]
    for i in range(out.size):
        out[i] = (np.float32(x[i]) - zero_point) * scale
