"""SIN, COS, GELU and inverse roots of float32, in loops that the compiler vectorizes: quotients of polynomials, as XNNPACK has them.

With fused multiply-adds they are XNNPACK's bit for bit, denormals apart, which it takes for 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oplet_compiled_ops.library.kernels import Kernel, kernel
from oplet_compiled_ops.library.lazy import emitted, inlined
from oplet_compiled_ops.recurrent.gates import quotient

__all__ = ["COS", "INVERSE_ROOT", "SIN", "gelu", "gelu_by_tanh"]

_ONE, _HALF = np.float32(1), np.float32(0.5)
#: Of the error function at x / sqrt(2): coefficients of the numerator and the denominator, the highest first, and where the quotient is 1.
_ERROR_ABOVE = (4.5835321316e-08, 1.2609783880e-05, 3.2973114867e-04, 9.3065137044e-03, 6.6972173750e-02, 7.9788452387e-01)
_ERROR_BELOW = (1.1988805682e-06, 7.2267655923e-05, 1.8622842617e-03, 2.8431978077e-02, 2.5060352683e-01, 1.0)
_ERROR_END = 5.1638283730
#: The same of tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)).
_TANH_ABOVE = (4.9544411240e-08, 1.4302649106e-05, 2.6887017884e-04, 7.2898347862e-03, 6.0803253204e-02, 7.9788458347e-01)
_TANH_BELOW = (1.3433452750e-06, 7.6477612311e-05, 1.3060354395e-03, 2.4381054565e-02, 2.4369759858e-01, 1.0)
_TANH_END = 4.84974098
#: Of the sine from -pi / 2 to pi / 2.
_SINE_ABOVE, _SINE_BELOW = (3.2340581529e-03, -1.3314664364e-01, 1.0), (4.8770775902e-04, 3.3519912511e-02, 1.0)
_PI, _TURNS, _TURN, _TURN_REST = (np.float32(value) for value in (np.pi, 0.5 / np.pi, 6.28125, 1.9353072e-3))
_QUARTER, _QUARTER_REST = np.float32(1.5707963705), np.float32(-4.3711388e-08)
#: Beyond it two parts of a turn are too few: XNNPACK's sines are off by more than 2e-6, and far beyond by thousands.
_FAR = np.float32(1 << 20)

inverse_roots = emitted("reductions:rsqrts")
largest, smallest = emitted("reductions:largest"), emitted("reductions:smallest")
_contracting: Callable[..., Any] = inlined(error_model="numpy", fastmath={"contract"}, forceinline=True)


@_contracting
def gelu(x):  # type: ignore[no-untyped-def]
    """Compute x times the standard normal CDF of x; NaN for -inf, as in LiteRT."""
    return x * _HALF * (quotient(x, _ERROR_ABOVE, _ERROR_BELOW, _ERROR_END) + _ONE)


@_contracting
def gelu_by_tanh(x):  # type: ignore[no-untyped-def]
    """Compute x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))); NaN for -inf, as in LiteRT."""
    return x * _HALF * (quotient(x, _TANH_ABOVE, _TANH_BELOW, _TANH_END) + _ONE)


@_contracting
def _sine(x, cosine):  # type: ignore[no-untyped-def]
    turns = np.rint(x * _TURNS)
    x = (x - turns * _TURN) - turns * _TURN_REST
    x = (_QUARTER - x) + _QUARTER_REST if cosine else x
    x = x if x < _PI - x else _PI - x
    x = x if x > -_PI - x else -_PI - x
    x = x if x < _PI - x else _PI - x
    return quotient(x, _SINE_ABOVE, _SINE_BELOW, 4.0)


def _waves(far: Any, cosine: bool) -> Kernel:
    def waves(x, out):  # type: ignore[no-untyped-def]
        for i in range(out.size):
            out[i] = _sine(x[i], cosine)
        if largest(x.ctypes.data, x.size) > _FAR or smallest(x.ctypes.data, x.size) < -_FAR:
            for i in range(out.size):
                out[i] = far(x[i]) if abs(x[i]) > _FAR else out[i]

    waves.__name__ = far.__name__
    return Kernel(waves, "void(f4[::1], f4[::1])")


@kernel("void(f4[::1], f4[::1])")
def INVERSE_ROOT(x, out):  # type: ignore[no-untyped-def]
    """Compute out = 1 / sqrt(x), element by element; with AVX-512 XNNPACK's estimate and Newton step."""
    for i in range(inverse_roots(x.ctypes.data, out.ctypes.data, out.size), out.size):
        out[i] = _ONE / np.sqrt(x[i])


#: Of each number; XNNPACK's up to 2**20.
SIN, COS = _waves(np.sin, False), _waves(np.cos, True)
