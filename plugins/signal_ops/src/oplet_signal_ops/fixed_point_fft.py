"""FFTs of int16 and int32 signals, bit-exact with KISS FFT's rounding.

tflite-micro's integer transforms are those of KISS FFT 1.3.0 in fixed point: values are fractions with 15 or 31 bits behind
the point, every stage first divides by its radix so that sums stay small, every product is rounded to nearest, and what
overflows nevertheless wraps around. The result is the transform divided by its length.

Complex numbers are arrays (2, ...): the real parts, then the imaginary parts.

Numerics: kiss_fft.c, tools/kiss_fftr.c and _kiss_fft_guts.h of mborgerding/kissfft, tag v130.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from oplet.kernels.arrays import Array

__all__ = ["FixedPoint", "FixedPointFft", "radices", "turned_right"]


def radices(length: int) -> list[int]:
    """Return the radices of a transform's stages, outermost first: fours, then a two, then threes, then fives.

    If the length has other prime factors, their product is one more radix at the end, for which there is no stage.
    """
    found = []
    for radix in (4, 2, 3, 5):
        while length % radix == 0:
            found.append(radix)
            length //= radix
    return [*found, length] if length > 1 else found


class FixedPoint:
    """Arithmetic on fixed-point fractions of dtype `narrow` (int16, int32); products use integers of twice the width."""

    def __init__(self, dtype: Any) -> None:
        self.narrow: np.dtype[Any] = np.dtype(dtype)
        self.wide: np.dtype[Any] = np.dtype(np.int32 if self.narrow == np.int16 else np.int64)
        self.one = int(np.iinfo(self.narrow).max)
        self.fraction_bits = self.one.bit_length()

    def rounded(self, products: Array) -> Array:
        products += 1 << (self.fraction_bits - 1)
        products >>= self.fraction_bits
        return products.astype(self.narrow)

    def scaled(self, values: Array, factor: int | Array) -> Array:
        return self.rounded(np.multiply(values, factor, dtype=self.wide, order="C"))

    def divided(self, values: Array, divisor: int) -> Array:
        return self.scaled(values, self.one // divisor)

    def multiplied(self, a: Array, b: tuple[Array, Array]) -> Array:
        """Multiply complex numbers, rounding to nearest; `b` is in the form that `factors` returns."""
        product = a * b[0]
        product += a[::-1] * b[1]
        return self.rounded(product)

    def factors(self, points: Array) -> tuple[Array, Array]:
        """Prepare complex factors for `multiplied`: real parts, and (-imaginary, imaginary), which multiply swapped parts."""
        return np.ascontiguousarray(points[0]), np.stack((-points[1], points[1]))

    def halved(self, add: np.ufunc, a: Array, b: Array) -> Array:
        """Return (a + b) / 2 or (a - b) / 2; 16-bit sums do not wrap around, as C adds them in 32 bits."""
        total = add(a, b, dtype=np.int32)
        total >>= 1
        result: Array = total.astype(self.narrow)
        return result

    def circle(self, phases: list[float]) -> Array:
        """Return the unit circle's points at these angles (twiddle factors)."""
        # Not numpy's functions, whose last bits differ from machine to machine.
        points = [[math.floor(0.5 + self.one * f(phase)) for phase in phases] for f in (math.cos, math.sin)]
        return np.array(points, self.wide)


class FixedPointFft:
    """The FFT of complex signals of one length.

    Attributes:
        length: the length of the signals, above 1 and without prime factors other than 2, 3 and 5.
        inverse: whether it is the inverse transform.
    """

    def __init__(self, length: int, fixed: FixedPoint, *, inverse: bool) -> None:
        self.length = length
        self.inverse = inverse
        self._fixed = fixed
        pi = math.pi if inverse else -math.pi
        twiddles = fixed.circle([2 * pi * i / length for i in range(length)])
        #: From the innermost stage: radix, length of what it combines, how many of them, and the twiddle factors.
        self._stages: list[tuple[int, int, int, tuple[Array, Array]]] = []
        span = 1
        for radix in reversed(radices(length)):
            blocks = length // (radix * span)
            powers = blocks * np.arange(1, radix)[:, None] * np.arange(span)
            # Repeated for every block, so that numpy goes through all in one loop.
            factors = fixed.factors(np.repeat(twiddles[:, powers, None], blocks, axis=3)[:, :, None])
            self._stages.append((radix, span, blocks, factors))
            span *= radix
        #: By radix: the roots of unity of that order.
        self._roots = {radix: twiddles[:, :: length // radix] for radix in radices(length)}

    def __call__(self, signals: Array) -> Array:
        """Transform the rows of a complex array (2, rows, length)."""
        rows = signals.shape[1]
        values = signals
        # Blocks are interleaved, the innermost axis; so the signal is in order from the start, and the spectrum in the end.
        for radix, span, blocks, factors in self._stages:
            parts = values.reshape(2, rows, span, radix, blocks).transpose(0, 3, 1, 2, 4)
            parts = self._fixed.divided(parts, radix)
            others = self._fixed.multiplied(parts[:, 1:], factors).swapaxes(0, 1)
            values = np.empty((2, rows, radix, span, blocks), parts.dtype)
            self._BUTTERFLIES[radix](self, parts[:, 0], others, values.transpose(2, 0, 1, 3, 4))
        return values.reshape(2, rows, self.length)

    # A butterfly combines transforms of parts of the signal: the first, and the others turned by their twiddle factors.

    def _two(self, first: Array, others: Array, out: Array) -> None:
        np.add(first, others[0], out[0])
        np.subtract(first, others[0], out[1])

    def _three(self, first: Array, others: Array, out: Array) -> None:
        a, b = others
        total = a + b
        middle = first - (total >> 1)
        gap = turned_right(self._fixed.scaled(a - b, self._roots[3][1, 1]))
        np.add(first, total, out[0])
        np.subtract(middle, gap, out[1])
        np.add(middle, gap, out[2])

    def _four(self, first: Array, others: Array, out: Array) -> None:
        a, b, c = others
        even, odd = first + b, first - b
        total, gap = a + c, turned_right(a - c)
        np.add(even, total, out[0])
        np.subtract(even, total, out[2])
        np.add(odd, gap, out[3 if self.inverse else 1])
        np.subtract(odd, gap, out[1 if self.inverse else 3])

    def _five(self, first: Array, others: Array, out: Array) -> None:
        scaled, (cosines, sines) = self._fixed.scaled, self._roots[5]
        a, b, c, d = others
        outer, inner, outer_gap, inner_gap = a + d, b + c, a - d, b - c
        np.add(first, outer + inner, out[0])
        for near, far, inner_sign in ((1, 2, 1), (2, 1, -1)):
            middle = first + scaled(outer, cosines[near]) + scaled(inner, cosines[far])
            gap = turned_right(scaled(outer_gap, sines[near]) + inner_sign * scaled(inner_gap, sines[far]))
            np.subtract(middle, gap, out[near])
            np.add(middle, gap, out[5 - near])

    _BUTTERFLIES: ClassVar = {2: _two, 3: _three, 4: _four, 5: _five}


def turned_right(z: Array) -> Array:
    """Return z / i, i.e. multiply complex numbers (2, ...) by -i."""
    turned = np.empty_like(z)
    turned[0] = z[1]
    np.negative(z[0], turned[1])
    return turned
