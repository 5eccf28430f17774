"""Quantization and dequantization of tensor values.

Numerics: tflite/kernels/internal/reference/quantize.h and dequantize.h: real = (integer - zero point) * scale; in the other direction the
quotient is computed in float32 and rounded to the nearest integer, halves away from zero. Integers of 32 bits and more, which QUANTIZE does
not produce from floats, use float64 in both directions, so that no bits are lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oplet.errors import TensorError

__all__ = ["Clamped", "Quantization", "dequantize", "integer_limits", "quantization_of"]

Array = NDArray[Any]
Details = Mapping[str, Any]

#: Number of values that are converted at a time.
_BLOCK = 1 << 20
#: Below this, float64 represents every integer and every half.
_EXACT = 1 << 52


class Clamped(NamedTuple):
    """Real values beyond a tensor's range, which were clamped."""

    number: int  #: The number of values.
    place: list[int]  #: Indices of the first such value.
    value: float  #: The first such value, before it was clamped.


def integer_limits(details: Details) -> tuple[int, int]:
    """Return the smallest and largest integer of a tensor: of its dtype, or of its 2 or 4 bits."""
    limits = np.iinfo(details["dtype"])
    low, high = details.get("limits", (limits.min, limits.max))
    return int(low), int(high)


class Quantization:
    """The quantization of a tensor: real = (integer - zero point) * scale.

    Attributes:
        scales: one scale, or one for each slice along `dimension`.
        zero_points: one zero point for each scale.
        dimension: the dimension along which scales differ.
        low: the smallest integer that the tensor can hold.
        high: the largest integer that the tensor can hold.
        problem: why the quantization cannot be applied, "" if it can; `dequantize` and `quantize` raise it.
    """

    def __init__(self, details: Details, scales: Array, zero_points: Array, dimension: int, problem: str) -> None:
        self._dtype = np.dtype(details["dtype"])
        self._wide: Any = np.float32 if self._dtype.itemsize <= 2 else np.float64
        self.scales, self.zero_points, self.dimension, self.problem = scales, zero_points, dimension, problem
        self.low, self.high = integer_limits(details)

    def __str__(self) -> str:
        return f"{self._dtype.name}, {self.parameters}"

    @property
    def parameters(self) -> str:
        """The quantization scale and zero point as text."""
        if len(self.scales) == 1:
            return f"scale {float(self.scales[0]):.6g}, zero point {int(self.zero_points[0])}"
        return f"{len(self.scales)} scales along dimension {self.dimension}"

    def dequantize(self, integers: Array, name: str) -> Array:
        """Convert integers to real values: float64 for integers of 32 bits and more, and where float32 would overflow, else
        float32.

        Quantizing them gives the same integers again.

        Args:
            integers: the tensor's values.
            name: the tensor's name in messages.

        Raises:
            TensorError: the quantization cannot be applied, or integers of 64 bits are too large for float64.
        """
        scales, zero_points = self._for(integers.shape, name)
        if self._dtype.itemsize == 8 and integers.size:
            largest = max(abs(int(integers.max())), abs(int(integers.min())))
            if largest >= _EXACT:
                raise TensorError(f"'{name}' holds {largest}, too large for a real value to lead back to it; give --raw.")
        real = np.subtract(integers, zero_points, dtype=np.float64)
        real *= scales
        if self._wide is np.float64:
            return real
        with np.errstate(over="ignore"):
            short = real.astype(np.float32)
        return real if np.isinf(short).any() else short

    def quantize(self, real: Array, name: str, source: str) -> tuple[Array, Clamped | None]:
        """Quantize real values as the op QUANTIZE does; return the integers, and the values that were clamped, None if there are
        none.

        Raises:
            TensorError: a value is NaN, or the quantization cannot be applied.
        """
        scales, zero_points = self._for(real.shape, name)
        integers, clamped = np.empty(real.shape, self._dtype), None
        size = _BLOCK if len(self.scales) == 1 else max(real.size, 1)
        flat, into = real.reshape(-1), integers.reshape(-1)
        for start in range(0, real.size, size):
            block = flat[start : start + size]
            shaped = block if size == _BLOCK else block.reshape(real.shape)
            steps = self._steps(shaped, scales, zero_points).reshape(-1)
            if np.isnan(steps).any():
                at = start + int(np.flatnonzero(np.isnan(steps))[0])
                raise TensorError(
                    f"'{source}' holds {flat[at]} at {_place(at, real.shape)}, and input '{name}' is quantized ({self}), which has no "
                    "integer for it; give numbers."
                )
            beyond = np.flatnonzero((steps < self.low) | (steps > self.high))
            if beyond.size:
                at = start + int(beyond[0])
                first = Clamped(0, _place(at, real.shape), float(flat[at])) if clamped is None else clamped
                clamped = first._replace(number=first.number + beyond.size)
                np.clip(steps, self.low, self.high, out=steps)
            into[start : start + size] = _whole(steps, self._dtype)
        return integers, clamped

    def _steps(self, real: Array, scales: Array, zero_points: Array) -> Array:
        steps: Array
        with np.errstate(all="ignore"):
            narrow = real.astype(self._wide)
            quotients = (narrow / scales.astype(self._wide)).astype(np.float64)
            if np.isinf(narrow).any():  # float64 beyond the range of float32
                quotients = np.where(np.isinf(narrow), real / scales, quotients)
            steps = np.trunc(quotients)
            steps += np.copysign(np.abs(quotients - steps) >= 0.5, quotients)  # exact; adding 0.5 first would round
            steps[np.isinf(quotients)] = quotients[np.isinf(quotients)]
            steps += zero_points
        return steps

    def range(self) -> tuple[float, float]:
        """Return the smallest and largest real value of a tensor with one scale."""
        low, high = ((limit - int(self.zero_points[0])) * float(self.scales[0]) for limit in (self.low, self.high))
        return low, high

    def _for(self, shape: tuple[int, ...], name: str) -> tuple[Array, Array]:
        """Return scales and zero points, shaped to broadcast against values of a shape."""
        problem = self.problem
        scales, zero_points = self.scales.astype(np.float64), self.zero_points.astype(np.int64)
        if len(scales) == 1:
            scales, zero_points = scales.reshape(()), zero_points.reshape(())
        elif not problem:
            if not 0 <= self.dimension < len(shape) or shape[self.dimension] != len(scales):
                problem = f"it has {len(scales)} scales along dimension {self.dimension} of its shape {list(shape)}"
            else:
                across = [1] * len(shape)
                across[self.dimension] = len(scales)
                scales, zero_points = scales.reshape(across), zero_points.reshape(across)
        if problem:
            raise TensorError(
                f"The values of '{name}' have no real numbers, as {problem}; give --raw to take its integers as they are."
            )
        return scales, zero_points


def quantization_of(details: Details) -> Quantization | None:
    """Return the quantization of a tensor; None if it is not quantized: it has no integers, no scale, or scales of 0.

    Args:
        details: its dictionary of `Interpreter.get_input_details`.
    """
    if np.dtype(details["dtype"]).kind not in "iu":
        return None
    scale, zero_point = details["quantization"]
    parameters = details.get("quantization_parameters", {"scales": [scale], "zero_points": [zero_point]})
    scales, zero_points = np.asarray(parameters["scales"]), np.asarray(parameters["zero_points"], np.int64)
    if not scales.any():
        return None
    problem, block = "", parameters.get("block_size", 0)
    if len(zero_points) != len(scales):  # LiteRT uses the first for all
        zero_points = np.full(len(scales), zero_points[0] if len(zero_points) else 0, np.int64)
    if block:
        problem = f"it is quantized by blocks of {block}"
    elif not np.all(np.isfinite(scales) & (scales > 0)):
        problem = f"it has the scale {float(scales[~(np.isfinite(scales) & (scales > 0))][0]):g}"
    return Quantization(details, scales, zero_points, int(parameters.get("quantized_dimension", 0)), problem)


def dequantize(values: Array, details: Details, name: str = "") -> Array:
    """Return the real values of a quantized tensor; values of other tensors are unchanged.

    Raises:
        TensorError: the quantization cannot be applied.
    """
    quantization = quantization_of(details) if values.dtype.kind in "iu" else None
    return values if quantization is None else quantization.dequantize(values, name or str(details["name"]))


def _whole(steps: Array, dtype: np.dtype[Any]) -> Array:
    """Convert whole float64 numbers to integers of a dtype; the largest, which float64 may have rounded up beyond the range, is
    clamped.
    """
    if dtype.itemsize < 8:
        return steps.astype(dtype)
    greatest = np.iinfo(dtype).max
    return np.where(steps >= float(greatest), greatest, np.where(steps >= float(greatest), 0, steps).astype(dtype))


def _place(at: int, shape: tuple[int, ...]) -> list[int]:
    return [int(i) for i in np.unravel_index(at, shape)] if shape else []
