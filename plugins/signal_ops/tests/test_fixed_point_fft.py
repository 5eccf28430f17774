"""The vectorised transforms give what KISS FFT's rules, followed one value at a time, give."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from oplet_signal_ops.fixed_point_fft import FixedPoint, FixedPointFft, radices
from oplet_signal_ops.real_fft import inverse_transform, transform

Number = tuple[int, int]


class Slow:
    """KISS FFT on Python's integers: plain recursion, one number after the other."""

    def __init__(self, bits: int, inverse: bool) -> None:
        self.bits, self.one, self.inverse = bits, 2 ** (bits - 1) - 1, inverse

    def wrap(self, x: int) -> int:
        return (x + 2 ** (self.bits - 1)) % 2**self.bits - 2 ** (self.bits - 1)

    def rounded(self, product: int) -> int:
        return self.wrap((product + 2 ** (self.bits - 2)) >> (self.bits - 1))

    def add(self, a: Number, b: Number, sign: int = 1) -> Number:
        return self.wrap(a[0] + sign * b[0]), self.wrap(a[1] + sign * b[1])

    def times(self, a: Number, b: Number) -> Number:
        return self.rounded(a[0] * b[0] - a[1] * b[1]), self.rounded(a[0] * b[1] + a[1] * b[0])

    def scale(self, a: Number, factor: int) -> Number:
        return self.rounded(a[0] * factor), self.rounded(a[1] * factor)

    def root(self, turns: float) -> Number:
        phase = 2 * math.pi * turns * (1 if self.inverse else -1)
        return math.floor(0.5 + self.one * math.cos(phase)), math.floor(0.5 + self.one * math.sin(phase))

    def fft(self, z: list[Number]) -> list[Number]:
        if len(z) == 1:
            return z
        p = radices(len(z))[0]
        parts = [self.fft(z[k::p]) for k in range(p)]
        m = len(z) // p
        out: list[Number] = [(0, 0)] * len(z)
        for u in range(m):
            turned = [self.scale(part[u], self.one // p) for part in parts]
            turned[1:] = [self.times(x, self.root(k * u / len(z))) for k, x in enumerate(turned[1:], 1)]
            for k, value in enumerate(self.butterfly(turned)):
                out[u + k * m] = value
        return out

    def butterfly(self, x: list[Number]) -> list[Number]:
        add = self.add
        if len(x) == 2:
            return [add(x[0], x[1]), add(x[0], x[1], -1)]
        if len(x) == 3:
            total = add(x[1], x[2])
            gap = self.scale(add(x[1], x[2], -1), self.root(1 / 3)[1])
            middle = add(x[0], (total[0] >> 1, total[1] >> 1), -1)
            return [add(x[0], total), add(middle, (-gap[1], gap[0])), add(middle, (gap[1], -gap[0]))]
        if len(x) == 4:
            even, odd = add(x[0], x[2]), add(x[0], x[2], -1)
            total, gap = add(x[1], x[3]), add(x[1], x[3], -1)
            sides = [add(odd, (gap[1], -gap[0])), add(odd, (-gap[1], gap[0]))]
            one, three = reversed(sides) if self.inverse else sides
            return [add(even, total), one, add(even, total, -1), three]
        result = [add(x[0], add(add(x[1], x[4]), add(x[2], x[3])))] * 5
        for k in (1, 2):
            middle, gap = x[0], (0, 0)
            for j in (1, 2):
                turns = j * k % 5
                sign = 1 if turns < 3 else -1
                real, imaginary = self.root(min(turns, 5 - turns) / 5)
                middle = add(middle, self.scale(add(x[j], x[5 - j]), real))
                gap = add(gap, self.scale(add(x[j], x[5 - j], -1), imaginary), sign)
            result[k], result[5 - k] = add(middle, (-gap[1], gap[0])), add(middle, (gap[1], -gap[0]))
        return result


def extremes(dtype: Any, shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    random, limits = np.random.default_rng(seed), np.iinfo(dtype)
    values = random.integers(limits.min, limits.max + 1, shape).astype(dtype)
    return np.where(random.random(shape) < 0.3, random.choice([limits.min, limits.max], shape), values).astype(dtype)


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("dtype", ["int16", "int32"])
@pytest.mark.parametrize("length", [2, 3, 4, 5, 6, 8, 9, 12, 15, 20, 25, 32, 60, 64, 120])
def test_every_length_and_direction_is_what_slow_arithmetic_gives(length: int, dtype: str, inverse: bool) -> None:
    signals = extremes(dtype, (2, 3, length), length)
    spectra = FixedPointFft(length, FixedPoint(dtype), inverse=inverse)(signals)
    slow = Slow(np.dtype(dtype).itemsize * 8, inverse)
    for row in range(3):
        wanted = slow.fft(list(zip(*signals[:, row].tolist())))
        assert list(zip(*spectra[:, row].tolist())) == wanted


@pytest.mark.parametrize(("dtype", "error"), [("int16", 4), ("int32", 16)])
@pytest.mark.parametrize("length", [4, 6, 10, 64, 90, 512])
def test_real_transforms_are_near_the_mathematical_ones(length: int, dtype: str, error: float) -> None:
    # Half the range: what the sums of louder ones overflow to has nothing to do with the mathematical transform.
    signal = np.random.default_rng(length).integers(-(2**14), 2**14, (2, length)).astype(dtype)
    if dtype == "int32":
        signal <<= 16
    spectrum = np.empty((2, length + 2), dtype)
    transform(length, dtype)(signal, spectrum)
    wanted = np.fft.rfft(signal.astype(np.float64)) / length
    np.testing.assert_allclose(spectrum[:, 0::2] + 1j * spectrum[:, 1::2], wanted, rtol=0, atol=error)
    back = np.empty((2, length), dtype)
    inverse_transform(length, dtype)(spectrum, back)
    np.testing.assert_allclose(back, signal / length, rtol=0, atol=error * 2)


@pytest.mark.parametrize(
    ("length", "wanted"), [(1, []), (2, [2]), (32, [4, 4, 2]), (360, [4, 2, 3, 3, 5]), (14, [2, 7]), (77, [77])]
)
def test_radices_come_in_the_order_of_the_stages(length: int, wanted: list[int]) -> None:
    assert radices(length) == wanted


def test_no_rows_are_no_work() -> None:
    for dtype in ("int16", "float32"):
        transform(8, dtype)(np.empty((0, 8), dtype), np.empty((0, 10), dtype))
        inverse_transform(8, dtype)(np.empty((0, 10), dtype), np.empty((0, 8), dtype))
