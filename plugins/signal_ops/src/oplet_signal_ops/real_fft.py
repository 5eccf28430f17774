"""FFTs of real signals through complex FFTs of half the length, on pairs of samples.

Integers have the roundings of KISS FFT (see `fixed_point_fft`): each direction divides by the length, so that a transform and
its inverse together divide the signal by the length. Floats go through numpy, where only the inverse divides.

Numerics: signal/src/rfft_*.cc and irfft_*.cc of tflite-micro; tools/kiss_fftr.c of mborgerding/kissfft, tag v130.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from oplet import Node, Tensor, TensorType, charge, checkpoint, ensure, ensure_type
from oplet.kernels.arrays import Array
from oplet.kernels.operands import ensure_operands
from oplet.kernels.options import integer
from oplet_signal_ops.attributes import ensure_declared_type
from oplet_signal_ops.fixed_point_fft import FixedPoint, FixedPointFft, radices
from oplet_signal_ops.nodes import AT_ONCE

__all__ = ["TYPES", "ensure_length", "inverse_transform", "read_transform", "transform"]

#: `transform(source, target)`: all rows of `source` into those of `target`; spectra alternate real and imaginary parts.
Transform = Callable[[Array, Array], None]

#: The types of signals.
TYPES = (TensorType.FLOAT32, TensorType.INT16, TensorType.INT32)

_LONGEST = 2**20
#: What tables and scratch take for each sample of a row, in bytes.
_VALUE_BYTES = 200


def ensure_length(length: int) -> None:
    """Raise an error for an FFT length that tflite-micro lacks: half of it must have no prime factors but 2, 3 and 5."""
    ensure(length % 2 == 0 and 4 <= length <= _LONGEST, f"the FFT's length is {length}; it must be even, from 4 to {_LONGEST}.")
    rest = radices(length // 2)[-1]
    ensure(rest <= 5, f"the FFT's length is {length}, a multiple of {rest}; half of it may have the factors 2, 3 and 5 only.")


def read_transform(node: Node) -> tuple[Tensor, Tensor, int]:
    """Check a transform node; return its input, output, and option `fft_length`."""
    ensure_operands(node, 1, 1)
    source, output = node.inputs[0], node.outputs[0]
    ensure_type(source, *TYPES)
    ensure_type(output, source.type)
    options = node.custom_map()
    ensure_declared_type(options, source, *TYPES)
    length = integer(options, "fft_length")
    ensure_length(length)
    ensure(source.ndim >= 1, f"{source} must have at least one dimension.")
    return source, output, length


def transform(length: int, dtype: Any) -> Transform:
    """Return a function that computes the real FFT of signals of `length` samples: the `length // 2 + 1` lowest frequencies."""
    charge(_VALUE_BYTES * length)
    return _in_parts(_floats if np.dtype(dtype) == np.float32 else _RealFft(length, dtype, inverse=False).forward)


def inverse_transform(length: int, dtype: Any) -> Transform:
    """Return a function that computes the inverse real FFT: from `length // 2 + 1` frequencies to signals of `length` samples."""
    charge(_VALUE_BYTES * length)
    return _in_parts(_inverse_floats if np.dtype(dtype) == np.float32 else _RealFft(length, dtype, inverse=True).backward)


def _in_parts(transform: Transform) -> Transform:
    """Wrap a transform to process some rows at a time, as its intermediates are several times as large as the values."""

    def run(source: Array, target: Array) -> None:
        rows = max(1, AT_ONCE // max(source.shape[1], 1))
        for start in range(0, len(source), rows):
            checkpoint()
            transform(source[start : start + rows], target[start : start + rows])

    return run


def _floats(source: Array, target: Array) -> None:
    spectrum = np.fft.rfft(source)
    target[:, 0::2] = spectrum.real
    target[:, 1::2] = spectrum.imag


def _inverse_floats(source: Array, target: Array) -> None:
    target[...] = np.fft.irfft(source[:, 0::2] + 1j * source[:, 1::2], target.shape[1])


class _RealFft:
    def __init__(self, length: int, dtype: Any, *, inverse: bool) -> None:
        self._half = half = length // 2
        self._fixed = FixedPoint(dtype)
        self._complex = FixedPointFft(half, self._fixed, inverse=inverse)
        pi = math.pi if inverse else -math.pi
        twiddles = self._fixed.circle([pi * ((i + 1) / half + 0.5) for i in range(half // 2)])
        self._factors = self._fixed.factors(twiddles[:, None])

    def forward(self, source: Array, target: Array) -> None:
        half, fixed = self._half, self._fixed
        mixed = self._complex(source.reshape(len(source), half, 2).transpose(2, 0, 1))
        spectrum = target.reshape(len(target), half + 1, 2).transpose(2, 0, 1)

        even, odd = fixed.divided(mixed[:, :, 0], 2)
        spectrum[0, :, 0] = even + odd
        spectrum[0, :, half] = even - odd
        spectrum[1, :, ::half] = 0

        total, turned = self._split(mixed)
        # The frequencies up to the middle, then down from the last but one: the middle one is written twice.
        low, high = spectrum[:, :, 1 : half // 2 + 1], spectrum[:, :, half - 1 : half - half // 2 - 1 : -1]
        low[...] = fixed.halved(np.add, total, turned)
        high[0] = fixed.halved(np.subtract, total[0], turned[0])
        high[1] = fixed.halved(np.subtract, turned[1], total[1])

    def backward(self, source: Array, target: Array) -> None:
        half, fixed = self._half, self._fixed
        spectrum = source.reshape(len(source), half + 1, 2).transpose(2, 0, 1)
        mixed = np.empty((2, len(source), half), fixed.narrow)
        first, last = spectrum[0, :, 0], spectrum[0, :, half]
        mixed[:, :, 0] = fixed.divided(np.stack((first + last, first - last)), 2)

        even, odd = self._split(spectrum)
        mixed[:, :, 1 : half // 2 + 1] = even + odd
        high = mixed[:, :, half - 1 : half - half // 2 - 1 : -1]
        high[0] = even[0] - odd[0]
        high[1] = odd[1] - even[1]

        signal = self._complex(mixed)
        target[:, 0::2], target[:, 1::2] = signal

    def _split(self, values: Array) -> tuple[Array, Array]:
        """Split a spectrum with its mirror image: return half of (value + conjugate image), and half of the difference, rotated."""
        half, fixed = self._half, self._fixed
        ahead = fixed.divided(values[:, :, 1 : half // 2 + 1], 2)
        behind = values[:, :, half - 1 : half - half // 2 - 1 : -1].copy()
        np.negative(behind[1], behind[1])
        behind = fixed.divided(behind, 2)
        return ahead + behind, fixed.multiplied(ahead - behind, self._factors)
