"""Tables of the output stage (bias, rescaling), made from the numpy kernels' layer parameters."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from oplet import Node, Tensor, checkpoint
from oplet.kernels.activations import float_activation_range
from oplet.kernels.requantization import Requantization, Rounding
from oplet.records import Row
from oplet.schema.enums import ActivationFunctionType
from oplet_compiled_ops.library.levels import LANES
from oplet_compiled_ops.library.memory import Array, aligned, padded_rows
from oplet_compiled_ops.library.rounding import AWAY, CLAMPED, FLOOR, NEAREST, NEAREST_ABOVE

if TYPE_CHECKING:
    from oplet_builtin_ops.layers.quantized_layer import QuantizedLayer

__all__ = ["Finishing", "float_finishing", "quantized_finishing"]

_least, _most = np.minimum.reduce, np.maximum.reduce
#: The most vectors of a panel; panels read the table to their end.
_WIDEST = 4
#: Channels whose thresholds are found at a time.
_AT_ONCE = 256
#: Bytes of a table per channel of integers.
_ROW_BYTES = 28


class Finishing(Row):
    """Parameters of a kernel's output stage, applied to its sums: bias, rescaling, clamp. See `emitting.vectors.Finish`.

    Attributes:
        bits: the bits of an output: 32 for floats, 8 or 16 for integers.
        rounding: one of `library.rounding`'s constants.
        table: the values per channel, as `Finish` reads them.
        channels: the entries of a row of the table: the channels, padded.
        bounds: (smallest output, largest output, zero point).
    """

    bits: int
    rounding: int
    table: Array
    channels: int
    bounds: tuple[float, float, float]


def _rows(channels: int) -> int:
    return padded_rows(channels, LANES) + (_WIDEST - 1) * LANES


def float_finishing(
    node: Node, bias: Tensor | None, channels: int, activation: ActivationFunctionType, times: int = 1
) -> Finishing:
    """Return the output stage of float sums: a constant bias, repeated `times` times over the channels, and the activation's
    clamp.
    """
    rows = _rows(channels)

    def make() -> Array:
        table = aligned((rows,), np.float32)
        if bias is not None:
            values = bias.data.reshape(-1)
            table[:channels] = values if times == 1 else np.tile(values, times)
        return table

    table = node.cached(("table of floats", channels, times), [bias], make, shared=True)
    low, high = float_activation_range(activation)
    return Finishing(32, CLAMPED, table, rows, (float(low), float(high), 0.0))


def quantized_finishing(layer: QuantizedLayer, integer: bool, added: Callable[[], Array] | None = None) -> Finishing | str:
    """Return the output stage of integer sums, a constant layer's requantization; or, if some channel's numbers are too large for
    it, a sentence that says so.

    Args:
        layer: the layer's parameters.
        integer: whether sums are int32; else they are float32.
        added: returns one integer per channel to add to its sums, only if `integer`; None for none.
    """
    kind = layer.output.dtype
    channels = len(layer.scales)
    if not channels:
        return "there is nothing to compute."
    rows = _rows(channels)
    low, high = layer.clamp()

    def make() -> tuple[int, Array] | str:
        largest = 2.0**31 - 1 if integer else 2.0**24
        found = _plain_scaling(layer, kind, largest, low) or _scaling(layer.requantizer(), kind, largest)
        if isinstance(found, str):
            return found
        table = aligned((rows * _ROW_BYTES,), np.uint8)
        starts = table[: rows * 4].view(np.int32 if integer else np.float32)
        values = table[rows * 4 :].view(np.float64).reshape(3, rows)
        starts[:channels] = found.offsets
        if added is not None:
            starts[:channels] += added()
        values[0, :channels], values[1, :channels], values[2, :channels] = found.factors, found.above, found.below
        return found.rounding, table

    key = "table of integers", integer, layer.centred, layer.source.type, kind
    made = layer.node.cached(key, [layer.weights, layer.bias], make, shared=True)
    if isinstance(made, str):
        return made
    return Finishing(8 * kind.itemsize, *made, rows, (float(low), float(max(low, high)), float(layer.output.zero_point)))


class _Scaling(Row):
    """How sums become outputs: the rounding, one of `library.rounding`'s constants, and the numbers of each channel."""

    rounding: int
    offsets: Array
    factors: Array
    above: Array
    below: Array


def _plain_scaling(layer: QuantizedLayer, kind: np.dtype, largest: float, low: int) -> _Scaling | None:
    """Return what `_scaling` returns where bounds for all channels together show that all sums are exact; None where they do not.

    Most layers of bytes are such, and it takes far fewer steps.
    """
    plain = layer.rounding is Rounding.FLOAT
    if not plain and (layer.rounding is not Rounding.DOUBLE or kind.itemsize != 1):
        return None
    offsets = layer.offsets()
    limit = layer.loose_bound + max(int(_most(offsets)), -int(_least(offsets)))
    lowest, highest = float(_least(layer.scales)), float(_most(layer.scales))
    if plain:
        none = np.zeros(len(offsets))
        exact = limit <= largest and lowest >= 0 and limit * highest < 2.0**30
        return _Scaling(AWAY, offsets, layer.scales, none, none) if exact else None
    first, last = math.frexp(lowest)[1], math.frexp(highest)[1]
    fractions, shifts = np.frexp(layer.scales)
    multipliers = np.floor(fractions * 2.0**31 + 0.5)
    # Nothing wraps around, no channel is scaled by nothing, and a scaled sum is less than half of `limit`.
    if not (lowest > 0 and _most(multipliers) < 2.0**31 and limit <= largest and last < 0):
        return None
    # A difference of scaled sums is a multiple of the unit 2**(shift - 31), which the outputs, or the sums, are few enough for.
    if not (first >= -11 or (first >= -20 and limit + 2 ** (1 - first) <= 2**21)):
        return None
    units = np.ldexp(2.0**-31, shifts)
    hairs, nudges = units * 0.5, units * 2.0**30
    rounding = NEAREST_ABOVE if low >= layer.output.zero_point else NEAREST
    return _Scaling(rounding, offsets, multipliers * units, hairs + nudges, hairs - nudges)


def _scaling(requantizer: Requantization, kind: np.dtype, largest: float) -> _Scaling | str:
    """Return numbers with which `Finish` computes the outputs exactly; a sentence if there are none for some channel.

    Args:
        requantizer: the layer's requantization.
        kind: the type of the outputs.
        largest: the largest sum that is exact.
    """
    limits, offsets, factors = requantizer.limits, requantizer.offsets, requantizer.factors
    with np.errstate(all="ignore"):  # factors may be infinite
        scaled = limits * np.abs(factors)
    held = (limits <= largest) & (scaled <= 2.0**30)
    if requantizer.rounding is Rounding.FLOAT:
        served = held & requantizer.is_tame & (limits < 2.0**53)
        above = below = np.zeros(len(limits))
    else:
        fitting = held & requantizer.fitting(kind)
        # Half of the smallest difference of two scaled sums; with it added, none lies halfway between two outputs.
        hairs = np.ldexp(0.5, requantizer.multipliers[1] - requantizer.unit_bits)
        # Outputs without a clamp need float64 to represent all multiples of that unit.
        served = fitting & (np.minimum(scaled, 2.0 ** (8 * kind.itemsize + 1)) + 2 <= hairs * 2.0**53)
        above, below = hairs + requantizer.nudges, hairs - requantizer.nudges + 2 * requantizer.lifts
    rounding = _rounding(requantizer, kind)
    if not served.all():
        constant, outputs = requantizer.constants()
        constant &= ~served
        steps = np.where(constant, outputs - requantizer.zero_point, 0)
        if rounding == AWAY:
            # Its thresholds are fixed: a filter of zeros begins with the output itself.
            zeros = limits == np.abs(offsets)
            constant &= zeros | (steps == 0)
            offsets, factors = np.where(constant, steps, offsets), np.where(constant, np.where(zeros, 1.0, 0.0), factors)
        else:
            offsets, factors = np.where(constant, 0, offsets), np.where(constant, 0.0, factors)
            above, below = np.where(constant, steps, above), np.where(constant, steps, below)
        served |= constant
        hard = np.flatnonzero(held & ~served & (rounding != AWAY and kind.itemsize == 1))
        if len(hard):
            from oplet_compiled_ops.convolution.thresholds import middle_thresholds  # here, as few layers have such channels
        for start in range(0, len(hard), _AT_ONCE):
            checkpoint()
            some = hard[start : start + _AT_ONCE]
            above[some], below[some], served[some] = middle_thresholds(requantizer, some)
        if rounding != AWAY and not served.all() and (served | fitting).all():
            rounding = FLOOR
            exact = ~served
            above[exact], below[exact] = requantizer.nudges[exact], (2 * requantizer.lifts - requantizer.nudges)[exact]
            above, below = above + 0.5, below + 0.5
            served |= fitting
    if not served.all():
        channel = int(np.argmin(served))
        if limits[channel] > largest:
            return f"the sums of channel {channel} may reach {limits[channel]:.4g}; it adds up to {largest:.4g} exactly."
        return (
            f"the sums of channel {channel}, up to {limits[channel]:.4g}, times {factors[channel]:.4g} are not exact in float64."
        )
    return _Scaling(rounding, offsets, factors, above, below)


def _rounding(requantizer: Requantization, kind: np.dtype) -> int:
    """Return the rounding mode of a layer whose sums are all exact in float64."""
    if requantizer.rounding is Rounding.FLOAT:
        return AWAY
    return NEAREST_ABOVE if kind.itemsize == 1 and requantizer.low >= requantizer.zero_point else NEAREST
