"""Quantization of float rows at run time, bit for bit as the numpy kernels do it (`oplet_builtin_ops.layers.hybrid`)."""

from __future__ import annotations

import numpy as np

from oplet_builtin_ops.layers.hybrid_layer import HybridLayer
from oplet_compiled_ops.library.kernels import Kernel, kernel
from oplet_compiled_ops.library.lazy import emitted, inlined

__all__ = ["QUANTIZE_BYTES", "QUANTIZE_ROWS", "ROWS_TO_FLOATS", "quantization_of"]

#: How rows are quantized: without a zero point, with one, or with one as XNNPACK does (`quantize_to_even`).
SYMMETRIC, AROUND, TO_EVEN = 0, 1, 2

_ZERO, _ONE, _LARGEST = np.float32(0), np.float32(1), np.float32(np.finfo(np.float32).max)
_NAN = np.float32(np.nan)
_MOST, _LEAST = np.float32(127), np.float32(-127)
_BELOW_HALF = np.float32(0.49999997)


def quantization_of(layer: HybridLayer) -> int:
    """Return how a layer's rows are quantized: SYMMETRIC, AROUND (with a zero point), or TO_EVEN (with one, as XNNPACK does)."""
    return TO_EVEN if layer.even else AROUND if layer.asymmetric else SYMMETRIC


largest = emitted("reductions:largest")
smallest = emitted("reductions:smallest")


@inlined()
def _are_finite(values):  # type: ignore[no-untyped-def]
    others = 0
    for i in range(values.size):
        others += values[i] - values[i] != _ZERO
    return others == 0


@inlined(error_model="numpy")
def _scaling(values, how):  # type: ignore[no-untyped-def]
    """Compute how to quantize a row; return (1 / scale, zero point, lowest integer, scale).

    The scale is NaN if the row has values that are not finite, or a range beyond float32. `how` is SYMMETRIC, AROUND (with a zero
    point) or TO_EVEN (with one, as XNNPACK computes it).
    """
    if not _are_finite(values):
        return _ONE, _ZERO, _LEAST, _NAN
    low = min(smallest(values.ctypes.data, values.size), _ZERO)
    high = max(largest(values.ctypes.data, values.size), _ZERO)
    if how == SYMMETRIC:
        most = max(-low, high)
        most = _MOST if most == _ZERO else most
        return min(np.float32(_MOST / most), _LARGEST), _ZERO, _LEAST, np.float32(most / _MOST)
    if low == high:
        return _ONE, _ZERO, _LEAST, _ONE
    least = np.float32(-128)
    if not np.float64(high) - np.float64(low) < np.float64(_LARGEST):
        return _ONE, _ZERO, _LEAST, _NAN
    spread = np.float32(high - low)
    if how == AROUND:
        step = np.float64(spread) / 255.0
        from_low, from_high = low / step, high / step
        place = 127 - from_high
        if 128 + abs(from_low) < 127 + abs(from_high):
            place = -128 - from_low
        zero = np.float32(min(max(np.trunc(place + (-0.5 if place < 0 else 0.5)), -128.0), 127.0))
        scale = np.float32(step)
        return min(np.float32(_ONE / scale), _LARGEST), zero, least, scale
    factor = min(np.float32(np.float32(255) / spread), _LARGEST)
    bottom, top = np.float32(low * factor), np.float32(high * factor)
    from_low = np.float32(np.float32(bottom - np.float32(128)) + np.float32(top + _MOST)) > _ZERO
    nearest = np.float32(least - bottom) if from_low else np.float32(_MOST - top)
    return factor, np.float32(np.rint(min(max(nearest, least), _MOST))), least, np.float32(_ONE / factor)


@inlined()
def _whole(value, how):  # type: ignore[no-untyped-def]
    """Round a float32 to an integer: ties to even if `how` is TO_EVEN, else ties away from zero."""
    if how == TO_EVEN:
        return np.rint(value)
    return np.trunc(value + (-_BELOW_HALF if value < _ZERO else _BELOW_HALF))


@inlined()
def _quantize(line, integers, how, factor, zero, least, scale, added):  # type: ignore[no-untyped-def]
    """Quantize a float32 row: write each value's integer minus the zero point, plus `added`, into `integers`.

    `how` decides the rounding (SYMMETRIC, AROUND, TO_EVEN), `factor` is 1 / scale, `zero` the zero point, `least` the lowest
    integer (the largest is 127). If `scale` is NaN, as for rows that are not finite, all integers are `added`.
    """
    lowest, highest = least - zero, _MOST - zero
    if scale != scale:
        for i in range(line.size):
            integers[i] = added
        return
    for i in range(line.size):
        value = _whole(line[i] * factor, how)
        value = lowest if value < lowest else value
        value = highest if value > highest else value
        integers[i] = np.int32(value) + added


@kernel("void(f4[:,::1], u1[:,::1], f4[::1], i4[::1], i8, i8, i8)")
def QUANTIZE_BYTES(values, target, scales, zeros, how, first, last):  # type: ignore[no-untyped-def]
    """Quantize the rows `first` to `last` (exclusive) of float32 `values` to bytes, which are 128 more than numpy's int8 values.

    `scales` receives the scale of each row, NaN if it holds an infinity or NaN or its range is too large for a float; `zeros`
    receives its zero point, 128 more than numpy's. `how` is SYMMETRIC, AROUND (with a zero point) or TO_EVEN (with one, as
    XNNPACK does).
    """
    for row in range(first, last):
        factor, zero, least, scales[row] = _scaling(values[row], how)
        zeros[row] = np.int32(zero) + np.int32(128)
        _quantize(values[row], target[row], how, factor, zero, least, scales[row], zeros[row])


@kernel("void(f4[:,::1], i2[:,::1], f4[::1], i8)")
def QUANTIZE_ROWS(values, target, scales, how):  # type: ignore[no-untyped-def]
    """Quantize each row of float32 `values` to 8 bits; write the integers minus the row's zero point into `target`.

    `scales` receives the scale of each row: NaN, and zeros in `target`, if it holds an infinity or NaN or its range is too large
    for a float. `how` is SYMMETRIC, AROUND or TO_EVEN.
    """
    for row in range(values.shape[0]):
        factor, zero, least, scales[row] = _scaling(values[row], how)
        _quantize(values[row], target[row], how, factor, zero, least, scales[row], np.int32(0))


#: The same with integers that are stored as floats.
ROWS_TO_FLOATS = Kernel(QUANTIZE_ROWS.function, "void(f4[:,::1], f4[:,::1], f4[::1], i8)")
