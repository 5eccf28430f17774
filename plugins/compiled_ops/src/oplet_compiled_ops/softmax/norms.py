"""L2_NORMALIZATION, LOCAL_RESPONSE_NORMALIZATION and odml.rms_norm: rows divided by functions of their sums of squares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oplet import TensorType
from oplet_compiled_ops.elementwise.fixed_point import scaled
from oplet_compiled_ops.library.kernels import Kernel, kernel
from oplet_compiled_ops.library.lazy import emitted, inlined
from oplet_compiled_ops.softmax.quantized_softmax import product

__all__ = ["NEIGHBOURS", "NORM", "QUANTIZED_NORM", "RMS_NORM"]

_LEAST = np.float32(1e-6)

highest_bit = emitted("atomics:highest_bit")
inverse_root, squares = emitted("reductions:rsqrt"), emitted("reductions:squares")
_inlined: Callable[..., Any] = inlined(error_model="numpy")


@kernel("void(f4[::1], f4[::1], i8)")
def NORM(x, out, columns):  # type: ignore[no-untyped-def]
    """Divide each row of `columns` numbers of a flat array by its L2 norm, or by 1e-6 if that is less; NaN stays NaN."""
    for start in range(0, out.size, columns):
        row, target = x[start : start + columns], out[start : start + columns]
        norm = np.sqrt(squares(row.ctypes.data, columns))
        norm = _LEAST if norm < _LEAST else norm
        for i in range(columns):
            target[i] = row[i] / norm


@kernel("void(f4[::1], f4[::1], f4[::1], f4, f4)")
def RMS_NORM(x, weight, out, share, epsilon):  # type: ignore[no-untyped-def]
    """Divide each row of a flat array by the root of its mean square plus `epsilon`, and multiply it by `weight`.

    With AVX-512 it is what XNNPACK computes for the composite's nodes. `share` is 1 / the length of a row, that of `weight`; `out` may be `x`.
    """
    columns = weight.size
    for start in range(0, out.size, columns):
        row, target = x[start : start + columns], out[start : start + columns]
        factor = inverse_root(squares(row.ctypes.data, columns) * share + epsilon)
        for i in range(columns):
            target[i] = row[i] * factor * weight[i]


@_inlined
def _inverse_root(x):  # type: ignore[no-untyped-def]
    """Compute 1 / sqrt(x) of an integer by five Newton steps; return (multiplier, shift): multiplier * 2**(shift - 31).

    For x <= 1 it is the largest number below 1.
    """
    if x <= 1:
        return np.int64((1 << 31) - 1), np.int64(0)
    large = 1 if x >> 29 else 0
    x >>= 2 * large
    pairs = (30 - highest_bit(x)) // 2 - 1
    shift = 11 + large - pairs
    quartered = (((x << (2 * pairs)) >> 1) + 1) >> 1
    root = 1 << 28
    for _ in range(5):
        cube = product(product(root, root), root) << 6
        root = (product(3 << 27, root) - product(quartered, cube)) << 3
    return product(root, 1518500250) << max(-shift, 0), -max(shift, 0)


def _quantized_norm(x, out, columns, offset, zero, early, late, low, high):  # type: ignore[no-untyped-def]
    """L2-normalize each row of `columns` integers of a flat array, less their zero point `offset`.

    Values are shifted left by `early` bits, multiplied by the row's inverse norm and by 2**late, and `zero`, the output's zero
    point, is added; outputs are clamped to `low` and `high`.
    """
    for start in range(0, out.size, columns):
        row, target = x[start : start + columns], out[start : start + columns]
        total = np.int32(0)
        for i in range(columns):
            value = np.int32(np.int32(row[i]) - offset)
            total = np.int32(total + np.int32(value * value))
        multiplier, shift = _inverse_root(np.int64(total))
        shift += late
        left, right = max(shift, 0), max(-shift, 0)
        half = np.int64(1 << 30) + (((np.int64(1) << (right - 1)) << 31) if right > 0 else 0)
        below = -(np.int64(1) << 31) if right > 0 else np.int64(0)
        for i in range(columns):
            value = (np.int64(row[i]) - offset) << early
            target[i] = min(max(scaled(value, multiplier, left, half, below, 31 + right) + zero, low), high)


@kernel("void(f4[::1], f4[::1], f8[::1], i8, i8, f8, f8, f8)")
def NEIGHBOURS(x, out, sums, columns, radius, alpha, bias, beta):  # type: ignore[no-untyped-def]
    """Normalize each row of `columns` values of a flat array locally: value * (bias + alpha * sum of squares) ** -beta.

    The sum is over the value and `radius` neighbours on either side; `sums` is scratch of `columns` + 1 float64.
    """
    for start in range(0, out.size, columns):
        row, target = x[start : start + columns], out[start : start + columns]
        sums[0] = 0.0
        for i in range(columns):
            sums[i + 1] = sums[i] + np.float64(row[i] * row[i])
        for i in range(columns):
            scale = (sums[min(i + radius + 1, columns)] - sums[max(i - radius, 0)]) * alpha + bias
            if beta == 1.0:
                power = 1.0 / scale
            elif beta == 0.5:
                power = 1.0 / np.sqrt(scale)
            else:
                power = scale**-beta
            target[i] = np.float32(np.float64(row[i]) * power)


#: By the type of the numbers.
QUANTIZED_NORM = {
    type: Kernel(_quantized_norm, f"void({code}[::1], {code}[::1], i8, i8, i8, i8, i8, i8, i8)")
    for type, code in {TensorType.INT8: "i1", TensorType.UINT8: "u1"}.items()
}
