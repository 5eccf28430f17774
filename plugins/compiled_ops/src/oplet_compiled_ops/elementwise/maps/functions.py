"""SIN, COS, TANH, GELU and roots of float32, in loops that the compiler vectorizes: quotients of polynomials, as XNNPACK has them.

With fused multiply-adds they are XNNPACK's bit for bit, denormals apart, which it takes for 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oplet_compiled_ops.library.kernels import kernel
from oplet_compiled_ops.library.lazy import emitted, inlined
from oplet_compiled_ops.recurrent.gates import tanh

__all__ = ["COS", "GELU", "GELU_BY_TANH", "INVERSE_ROOT", "MAGNITUDE", "NEGATIVE", "ROOT", "SIN", "TANH"]

_ONE, _HALF = np.float32(1), np.float32(0.5)
#: Of the error function at x / sqrt(2), which is 1 beyond the last: the odd coefficients of the numerator, the even ones of the denominator.
_G11, _G9, _G7 = np.float32(4.5835321316e-08), np.float32(1.2609783880e-05), np.float32(3.2973114867e-04)
_G5, _G3, _G1 = np.float32(9.3065137044e-03), np.float32(6.6972173750e-02), np.float32(7.9788452387e-01)
_G10, _G8, _G6 = np.float32(1.1988805682e-06), np.float32(7.2267655923e-05), np.float32(1.8622842617e-03)
_G4, _G2, _G_END = np.float32(2.8431978077e-02), np.float32(2.5060352683e-01), np.float32(5.1638283730)
#: The same of tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)).
_A11, _A9, _A7 = np.float32(4.9544411240e-08), np.float32(1.4302649106e-05), np.float32(2.6887017884e-04)
_A5, _A3, _A1 = np.float32(7.2898347862e-03), np.float32(6.0803253204e-02), np.float32(7.9788458347e-01)
_A10, _A8, _A6 = np.float32(1.3433452750e-06), np.float32(7.6477612311e-05), np.float32(1.3060354395e-03)
_A4, _A2, _A_END = np.float32(2.4381054565e-02), np.float32(2.4369759858e-01), np.float32(4.84974098)
#: Of the sine from -pi / 2 to pi / 2.
_S5, _S3, _S4, _S2 = (np.float32(value) for value in (3.2340581529e-03, -1.3314664364e-01, 4.8770775902e-04, 3.3519912511e-02))
_PI, _TURNS, _TURN, _TURN_REST = (np.float32(value) for value in (np.pi, 0.5 / np.pi, 6.28125, 1.9353072e-3))
_QUARTER, _QUARTER_REST = np.float32(1.5707963705), np.float32(-4.3711388e-08)
#: Beyond it two parts of a turn are too few: XNNPACK's sines are off by more than 2e-6, and far beyond by thousands.
_FAR = np.float32(1 << 20)

inverse_roots = emitted("maps:inverse_roots")
largest, smallest = emitted("reductions:largest"), emitted("reductions:smallest")
_contracting: Callable[..., Any] = inlined(error_model="numpy", fastmath={"contract"}, forceinline=True)


@_contracting
def _gelu(x):  # type: ignore[no-untyped-def]
    a = _G_END if x > _G_END else x
    a = -_G_END if a < -_G_END else a
    square = a * a
    p = a * (((((_G11 * square + _G9) * square + _G7) * square + _G5) * square + _G3) * square + _G1)
    q = ((((_G10 * square + _G8) * square + _G6) * square + _G4) * square + _G2) * square + _ONE
    return x * _HALF * (p / q + _ONE)


@_contracting
def _gelu_by_tanh(x):  # type: ignore[no-untyped-def]
    a = _A_END if x > _A_END else x
    a = -_A_END if a < -_A_END else a
    square = a * a
    p = a * (((((_A11 * square + _A9) * square + _A7) * square + _A5) * square + _A3) * square + _A1)
    q = ((((_A10 * square + _A8) * square + _A6) * square + _A4) * square + _A2) * square + _ONE
    return x * _HALF * (p / q + _ONE)


@_contracting
def _remainder(x):  # type: ignore[no-untyped-def]
    turns = np.rint(x * _TURNS)
    return (x - turns * _TURN) - turns * _TURN_REST


@_contracting
def _to_quarter(x):  # type: ignore[no-untyped-def]
    turns = np.rint(x * _TURNS)
    return (_QUARTER - ((x - turns * _TURN) - turns * _TURN_REST)) + _QUARTER_REST


@_contracting
def _sine(x):  # type: ignore[no-untyped-def]
    x = x if x < _PI - x else _PI - x
    x = x if x > -_PI - x else -_PI - x
    x = x if x < _PI - x else _PI - x
    square = x * x
    return x * ((_S5 * square + _S3) * square + _ONE) / ((_S4 * square + _S2) * square + _ONE)


@kernel("void(f4[::1], f4[::1])")
def SIN(x, out):  # type: ignore[no-untyped-def]
    """Compute out = sin(x), element by element; XNNPACK's up to 2**20."""
    for i in range(out.size):
        out[i] = _sine(_remainder(x[i]))
    if largest(x.ctypes.data, x.size) > _FAR or smallest(x.ctypes.data, x.size) < -_FAR:
        for i in range(out.size):
            out[i] = np.sin(x[i]) if abs(x[i]) > _FAR else out[i]


@kernel("void(f4[::1], f4[::1])")
def COS(x, out):  # type: ignore[no-untyped-def]
    """Compute out = cos(x), element by element; XNNPACK's up to 2**20."""
    for i in range(out.size):
        out[i] = _sine(_to_quarter(x[i]))
    if largest(x.ctypes.data, x.size) > _FAR or smallest(x.ctypes.data, x.size) < -_FAR:
        for i in range(out.size):
            out[i] = np.cos(x[i]) if abs(x[i]) > _FAR else out[i]


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
    """Compute out = 1 / sqrt(x), element by element; with AVX-512 XNNPACK's estimate and Newton step."""
    for i in range(inverse_roots(x.ctypes.data, out.ctypes.data, out.size), out.size):
        out[i] = _ONE / np.sqrt(x[i])
