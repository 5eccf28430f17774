"""Products of one row of activations with a recurrent cell's weights, float32 or int8.

With int8 weights the row is quantized first, by the arithmetic of the numpy kernels; sums of integers are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oplet_compiled_ops.library.kernels import Kernel
from oplet_compiled_ops.library.lazy import inlined

__all__ = ["PROJECT", "PROJECT_MORE", "multiply_floats", "multiply_integers"]

_ZERO, _ONE, _HALF, _NAN = np.float32(0), np.float32(1), np.float32(0.49999997), np.float32(np.nan)
_MOST, _LEAST = np.float32(127), np.float32(-128)
#: The bits of infinity as an integer; those of NaN are larger.
_INFINITE = 0x7F800000
_LARGEST = float(np.finfo(np.float32).max)

_inlined: Callable[..., Any] = inlined(error_model="numpy", boundscheck=False)
_in_any_order: Callable[..., Any] = inlined(error_model="numpy", fastmath={"reassoc", "contract", "nsz"}, boundscheck=False)


@_in_any_order
def _dot(left, right):  # type: ignore[no-untyped-def]
    total = _ZERO
    for k in range(left.size):
        total += left[k] * right[k]
    return total


@_inlined
def _dot_integers(left, right):  # type: ignore[no-untyped-def]
    total = np.int32(0)
    for k in range(left.size):
        total = np.int32(total + np.int32(left[k]) * np.int32(right[k]))
    return total


@_inlined
def _away(value):  # type: ignore[no-untyped-def]
    # Adding the largest number below a half before truncation rounds halves away from zero.
    return value + (-_HALF if value < _ZERO else _HALF)


@_inlined
def _float(bits):  # type: ignore[no-untyped-def]
    pattern = np.int32(bits)
    return np.float64(pattern.view(np.float32))


@_inlined
def _largest(bits):  # type: ignore[no-untyped-def]
    # The bits without the sign, as integers, have the order of magnitudes, and the compiler vectorizes their comparison.
    most = np.int32(0)
    for k in range(bits.size):
        most = np.int32(max(most, bits[k] & 0x7FFFFFFF))
    return most


@_inlined
def _quantize(values, target):  # type: ignore[no-untyped-def]
    """Quantize a float32 row symmetrically to -127 .. 127 in `target`; return the scale: NaN, and zeros, if a value is not
    finite.
    """
    most = _largest(values.view(np.int32))
    if most >= _INFINITE:
        target[:] = 0
        return _NAN
    largest = _float(most)
    largest = 127.0 if largest == 0.0 else largest
    factor = np.float32(min(127.0 / largest, _LARGEST))
    for k in range(values.size):
        target[k] = np.int32(_away(values[k] * factor))
    return np.float32(largest / 127.0)


@_inlined
def _ordered(bits):  # type: ignore[no-untyped-def]
    # With all bits but the sign flipped in negative numbers, the bits as integers have the order of the numbers; and back.
    return np.int32(bits ^ ((bits >> 31) & 0x7FFFFFFF))


@_inlined
def _range(bits):  # type: ignore[no-untyped-def]
    least = np.int32(0)
    most = np.int32(0)
    for k in range(bits.size):
        order = _ordered(bits[k])
        least = np.int32(min(least, order))
        most = np.int32(max(most, order))
    return least, most


@_inlined
def _quantize_around(values, target):  # type: ignore[no-untyped-def]
    """Quantize a float32 row to -128 .. 127 with a zero point, and write the integers minus the zero point into `target`.

    Return the scale: NaN, and zeros in `target`, if a value is not finite.
    """
    least, most = _range(values.view(np.int32))
    if most >= _INFINITE or least <= ~_INFINITE:
        target[:] = 0
        return _NAN
    low, high = _float(_ordered(least)), _float(most)
    if low == high:  # zeros of both signs
        target[:] = 0
        return _ONE
    step = np.float64(np.float32(high - low)) / 255.0
    from_low, from_high = low / step, high / step
    middle = -128.0 - from_low if 128.0 + abs(from_low) < 127.0 + abs(from_high) else 127.0 - from_high
    zero_point = np.float32(min(max(np.trunc(middle + np.copysign(0.5, middle)), -128.0), 127.0))
    scale = np.float32(step)
    factor = np.float32(min(1.0 / np.float64(scale), _LARGEST))
    least_step, most_step = _LEAST - zero_point, _MOST - zero_point
    for k in range(values.size):
        steps = _away(values[k] * factor)
        steps = least_step if steps < least_step else steps
        steps = most_step if steps > most_step else steps
        target[k] = np.int32(steps)
    return scale


@_inlined
def multiply_floats(row, weights, added, target):  # type: ignore[no-untyped-def]
    """Compute target = weights @ row + added, float32."""
    for column in range(target.size):
        target[column] = _dot(row, weights[column]) + added[column]


@_inlined
def multiply_integers(row, weights, scales, added, quantized, asymmetric, target):  # type: ignore[no-untyped-def]
    """Compute target = weights @ row + added with int8 weights, quantizing the row at run time.

    Args:
        row: the activations, float32.
        weights: int8, a row for each result.
        scales: the scale of each row of the weights.
        added: float32, one for each result.
        quantized: int16, memory for the quantized row.
        asymmetric: whether the row is quantized with a zero point.
        target: float32, receives the results.
    """
    scale = _quantize_around(row, quantized) if asymmetric else _quantize(row, quantized)
    for column in range(target.size):
        # float64 holds the product of a float32 sum and its factor exactly; sums beyond 2**24 are rounded first, as in the numpy
        # kernel.
        total = np.float64(_dot_integers(quantized, weights[column])) * np.float64(scale * scales[column])
        target[column] = np.float32(total) + added[column]


def _project(source, weights, bias, projected):  # type: ignore[no-untyped-def]
    for row in range(source.shape[0]):
        multiply_floats(source[row], weights, bias, projected[row])


def _project_hybrid(source, weights, scales, quantized, asymmetric, bias, projected):  # type: ignore[no-untyped-def]
    for row in range(source.shape[0]):
        multiply_integers(source[row], weights, scales, bias, quantized, asymmetric, projected[row])


def _project_more(source, weights, projected):  # type: ignore[no-untyped-def]
    for row in range(source.shape[0]):
        multiply_floats(source[row], weights, projected[row], projected[row])


def _project_more_hybrid(source, weights, scales, quantized, asymmetric, projected):  # type: ignore[no-untyped-def]
    for row in range(source.shape[0]):
        multiply_integers(source[row], weights, scales, projected[row], quantized, asymmetric, projected[row])


#: The inputs' contributions to the gates, by whether the weights are int8.
PROJECT = {
    False: Kernel(_project, "void(f4[:,::1], f4[:,::1], f4[::1], f4[:,::1])"),
    True: Kernel(_project_hybrid, "void(f4[:,::1], i1[:,::1], f4[::1], i2[::1], i8, f4[::1], f4[:,::1])"),
}
#: Those of a second input, which are added.
PROJECT_MORE = {
    False: Kernel(_project_more, "void(f4[:,::1], f4[:,::1], f4[:,::1])"),
    True: Kernel(_project_more_hybrid, "void(f4[:,::1], i1[:,::1], f4[::1], i2[::1], i8, f4[:,::1])"),
}
