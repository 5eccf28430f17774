"""Look-up tables for ops on one small-integer operand, or on a pair of 8-bit ones: the op becomes a gather.

A table is indexed by the bits of a value, so int8 tables have the order 0 ... 127, -128 ... -1. Numerics of the sampled tables:
tflite/kernels/internal/common.h (LUTPopulate, LUTLookup).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from oplet import Tensor, TensorType, ensure
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.fixed_point import clip, quantized_range

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "LookupRule",
    "every_value",
    "interpolated",
    "interpolation_table",
    "lookup",
    "lookup_table",
    "refuse_below",
    "sampled_table",
]

#: A function from a quantized op's input values to its output values, both int64.
LookupRule = Callable[[Array], Array]

#: The least size for which bytes.translate is faster than np.take, which widens each index to 64 bits.
_TRANSLATE_FROM: Final = 4096
#: The values per block of `take` and of a table that is computed, and of `translate`, which stay in the cache.
_FEW, _MANY = 8192, 65536

_UNSIGNED: Final[dict[int, np.dtype[Any]]] = {1: np.dtype(np.uint8), 2: np.dtype(np.uint16)}
_DTYPES: Final[dict[TensorType, np.dtype[Any]]] = {
    TensorType.INT8: np.dtype(np.int8),
    TensorType.UINT8: np.dtype(np.uint8),
    TensorType.INT16: np.dtype(np.int16),
    TensorType.INT32: np.dtype(np.int32),
}


def every_value(type: TensorType) -> NDArray[np.int64]:
    """Return all values of an 8-bit or 16-bit type as int64, in the order of their bit patterns."""
    dtype = _DTYPES[type]
    ensure(dtype.itemsize in _UNSIGNED, f"{type.name} has too many values for a table.")
    return np.arange(1 << 8 * dtype.itemsize, dtype=_UNSIGNED[dtype.itemsize]).view(dtype).astype(np.int64)


def lookup_table(source: TensorType, target: TensorType, rule: LookupRule) -> Array:
    """Return a look-up table: the results of `rule` for every value of integer type `source`, saturated to type `target`."""
    low, high = quantized_range(target)
    values = every_value(source)
    table: Array = np.empty(values.size, _DTYPES[target])
    for start, part in _pieces(values, _FEW):
        table[start : start + _FEW] = np.clip(rule(part), low, high)
    return table


def lookup(table: Array, source: Array, output: Array) -> Thunk:
    """Return a function that sets `output` to the table's entries for the 8-bit or 16-bit values of `source`."""
    index = source.reshape(-1).view(_UNSIGNED[source.dtype.itemsize])
    target = output.reshape(-1)
    if index.itemsize == target.itemsize == 1 and index.size >= _TRANSLATE_FROM:
        return _translation(table.tobytes(), index, target.view(np.uint8))
    take = table.take
    if index.size <= _FEW:

        def run() -> None:
            take(index, None, target, "clip")

        return run
    # `take` would make an int64 copy of all indices.
    wide = np.empty(_FEW, np.int64)
    pieces = [(wide[: len(part)], part, target[i : i + _FEW]) for i, part in _pieces(index, _FEW)]

    def run_pieces() -> None:
        for indices, part, found in pieces:
            indices[...] = part
            take(indices, None, found, "clip")

    return run_pieces


def refuse_below(source: Tensor, lowest: int) -> None:
    """Raise the error for an input of SQRT or RSQRT with the value `lowest`, which is below the zero point, so negative."""
    ensure(False, f"{source} holds {lowest}, below its zero point {source.zero_point}: negative numbers have no root.")


def _translation(octets: bytes, index: Array, target: Array) -> Thunk:
    pieces: list[tuple[bytearray, Array, Array, Array]] = []
    for i, part in _pieces(index, _MANY):
        buffer = pieces[0][0] if pieces and len(part) == _MANY else bytearray(len(part))
        pieces.append((buffer, np.frombuffer(buffer, np.uint8), part, target[i : i + _MANY]))

    def run() -> None:
        for buffer, values, part, found in pieces:
            values[...] = part
            found[...] = np.frombuffer(buffer.translate(octets), np.uint8)

    return run


def _pieces(index: Array, size: int) -> list[tuple[int, Array]]:
    return [(i, index[i : i + size]) for i in range(0, len(index), size)]


def _round(values: NDArray[Any]) -> NDArray[Any]:
    """Round to the nearest integer, halves away from zero."""
    whole = np.trunc(values)
    rounded: NDArray[Any] = np.where(np.abs(values - whole) >= 0.5, whole + np.copysign(values.dtype.type(1), values), whole)
    return rounded


def sampled_table(
    type: TensorType,
    function: Callable[[NDArray[Any]], NDArray[Any]],
    input_scale: float,
    input_zero_point: int,
    output_scale: float,
    output_zero_point: int,
) -> Array:
    """Sample `function` of real numbers at every 8-bit value; return the dequantize-compute-quantize table of an op.

    Args:
        type: INT8 or UINT8, of input and output.
        function: from real values to real values, both float32. It should compute in double precision: numpy's single-precision
            functions differ from C's in the last bit, which can change the result by a step.
        input_scale: the input's scale.
        input_zero_point: the input's zero point.
        output_scale: the output's scale.
        output_zero_point: the output's zero point.
    """
    with np.errstate(all="ignore"):
        reals = np.float32(input_scale) * (every_value(type) - input_zero_point).astype(np.float32)
        steps = function(reals).astype(np.float32) * (np.float32(1) / np.float32(output_scale))
        shifted = _round(steps) + np.float32(output_zero_point)
    low, high = quantized_range(type)
    # Values beyond int32 and NaN are undefined in C++; this is what LiteRT's binary returns.
    lost = np.isnan(shifted) | ((low == 0) & (shifted >= 2.0**31))
    clamped = np.where(lost, 0, clip(shifted, np.float32(low), np.float32(high)))
    return np.asarray(clamped).astype(_DTYPES[type])


def interpolation_table(
    function: Callable[[NDArray[Any]], NDArray[Any]],
    input_scale: float,
    input_zero_point: int,
    output_scale: float,
    output_zero_point: int,
    dtype: type[np.floating[Any]] = np.float32,
) -> NDArray[np.int16]:
    """Sample `function` at 513 points, for an int16 op that computes it by interpolation (`interpolated`).

    Each sample but the last is lowered by half of the error that linear interpolation has midway to the next sample.

    Args:
        function: from real values to real values, both of type `dtype`.
        dtype: the precision in which the table is computed.
    """
    real = dtype
    count = 512
    with np.errstate(all="ignore"):
        first, last = (real(input_scale) * real(bound - input_zero_point) for bound in (-32768, 32767))
        lowest, highest = (real(output_scale) * real(bound - output_zero_point) for bound in (-32768, 32767))
        step = real((last - first) / real(count))
        per_unit = real(65536) / (highest - lowest)
        starts = (first + np.arange(count + 1).astype(real) * step).astype(real)
        samples = function(starts).astype(real) * per_unit
        middles = _round(function(starts[:-1] + step / real(2)).astype(real) * per_unit)
        rounded = _round(samples)
        error = _round((samples[1:] + rounded[:-1]) / real(2)) - middles
        table = rounded - np.append(_round(error / real(2)), real(0))
        table[-1] = _round(function(np.array([last], real)).astype(real) * per_unit)[0]
    # The error at an infinite sample is NaN, which C++ converts to 0.
    clamped = np.nan_to_num(clip(table, real(-32768), real(32767)), nan=0)
    return np.asarray(clamped).astype(np.int16)


def interpolated(samples: NDArray[np.int16]) -> NDArray[np.int16]:
    """Interpolate linearly between 513 samples; return a look-up table: 9 bits of a value select the segment, 7 the position in it."""
    lines = np.multiply.outer(np.diff(samples), np.arange(128, dtype=np.int32))  # slopes wrap around, as in C++
    lines += 64
    lines >>= 7
    lines += samples[:-1, None]
    return np.roll(lines.astype(np.int16), 256, 0).reshape(-1)  # values from 0 on come first
