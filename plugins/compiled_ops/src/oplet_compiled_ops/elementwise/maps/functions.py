"""TANH, GELU and roots of float32, in loops that the compiler vectorizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oplet_compiled_ops.library.kernels import kernel
from oplet_compiled_ops.library.lazy import inlined
from oplet_compiled_ops.recurrent.gates import tanh
from oplet_compiled_ops.softmax.exponentials import exp

__all__ = ["GELU", "GELU_BY_TANH", "INVERSE_ROOT", "MAGNITUDE", "NEGATIVE", "ROOT", "TANH"]

_ZERO, _ONE, _HALF, _NAN, _LEAST = np.float32(0), np.float32(1), np.float32(0.5), np.float32(np.nan), np.float32(-np.inf)
_LOWEST = np.float32(-87.33)
#: The polynomial of `oplet_builtin_ops.arithmetic.gaussian`: the normal distribution's tail beyond a, divided by exp(-a * a / 2), in
#: t = 1 / (1 + 0.3 a), highest power first.
_T7, _T6, _T5, _T4 = (np.float32(value) for value in (0.035931956, -0.15827685, 0.20820796, -0.055394988))
_T3, _T2, _T1, _T0 = (np.float32(value) for value in (0.12946975, 0.099637344, 0.12079838, 0.11962639))
_THIRD, _FARTHEST = np.float32(0.3), np.float32(40)
_SLOPE, _CUBIC = np.float32(2 * np.sqrt(2 / np.pi)), np.float32(2 * np.sqrt(2 / np.pi) * 0.044715)

_contracting: Callable[..., Any] = inlined(error_model="numpy", fastmath={"contract"}, forceinline=True)


@_contracting
def _gelu(x):  # type: ignore[no-untyped-def]
    a = abs(x)
    a = a if a < _FARTHEST else _FARTHEST
    t = _ONE / (a * _THIRD + _ONE)
    p = ((((((_T7 * t + _T6) * t + _T5) * t + _T4) * t + _T3) * t + _T2) * t + _T1) * t + _T0
    power = a * a * -_HALF
    tail = p * t * a * exp(power)
    tail = _ZERO if power < _LOWEST else tail
    result = (_ZERO if x < _ZERO else x) - tail
    return _NAN if x == _LEAST else result


@_contracting
def _gelu_by_tanh(x):  # type: ignore[no-untyped-def]
    # (1 + tanh(z / 2)) / 2 = 1 / (1 + exp(-z))
    z = x * (x * x * _CUBIC + _SLOPE)
    gate = _ONE / (_ONE + exp(-(_LOWEST if z < _LOWEST else z)))
    gate = _ZERO if z < _LOWEST else gate
    return x * gate


@kernel("void(f4[::1], f4[::1])")
def GELU(x, out):  # type: ignore[no-untyped-def]
    """Compute out = x times the standard normal CDF of x; NaN for -inf, as in LiteRT."""
    for i in range(out.size):
        out[i] = _gelu(x[i])


@kernel("void(f4[::1], f4[::1])")
def GELU_BY_TANH(x, out):  # type: ignore[no-untyped-def]
    """Compute out = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))); NaN for -inf, as in LiteRT."""
    for i in range(out.size):
        out[i] = _gelu_by_tanh(x[i])


@kernel("void(f4[::1], f4[::1])")
def MAGNITUDE(x, out):  # type: ignore[no-untyped-def]
    """Compute out = |x|, element by element."""
    for i in range(out.size):
        out[i] = abs(x[i])


@kernel("void(f4[::1], f4[::1])")
def NEGATIVE(x, out):  # type: ignore[no-untyped-def]
    """Compute out = -x, element by element."""
    for i in range(out.size):
        out[i] = -x[i]


@kernel("void(f4[::1], f4[::1])")
def TANH(x, out):  # type: ignore[no-untyped-def]
    """Compute out = tanh(x), element by element."""
    for i in range(out.size):
        out[i] = tanh(x[i])


@kernel("void(f4[::1], f4[::1])")
def ROOT(x, out):  # type: ignore[no-untyped-def]
    """Compute out = sqrt(x), element by element, exactly rounded."""
    for i in range(out.size):
        out[i] = np.sqrt(x[i])


@kernel("void(f4[::1], f4[::1])")
def INVERSE_ROOT(x, out):  # type: ignore[no-untyped-def]
    """Compute out = 1 / sqrt(x), element by element, from the rounded square root."""
    for i in range(out.size):
        out[i] = _ONE / np.sqrt(x[i])
