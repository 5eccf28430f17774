"""Tables of the output stage (bias, rescaling), made from the numpy kernels' layer parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from oplet import Node, Tensor, checkpoint
from oplet.kernels.activations import float_activation_range
from oplet.records import Row
from oplet.schema.enums import ActivationFunctionType
from oplet_compiled_ops.convolution import RESCALING
from oplet_compiled_ops.library.levels import LANES
from oplet_compiled_ops.library.memory import Array, aligned, padded_rows
from oplet_compiled_ops.library.rounding import AWAY, CLAMPED, FLOOR, NEAREST, NEAREST_ABOVE

if TYPE_CHECKING:
    from oplet.kernels.requantization import Requantization, Rounding
    from oplet_builtin_ops.layers.quantized_layer import QuantizedLayer

__all__ = ["Finishing", "float_finishing", "quantized_finishing"]

#: The most vectors of a panel; panels read the table to their end.
_WIDEST = 4
#: The rows of a table of floats that is made faster than another interpreter's is found.
_FEW = 4096
#: Channels whose thresholds are found at a time.
_AT_ONCE = 256
#: Bytes of a table per channel of integers.
_ROW_BYTES = 28
#: What a kernel gets in place of weights that it need not read.
_NO_WEIGHTS = np.zeros(0, np.int8)


class Finishing(Row):
    """Parameters of a kernel's output stage, applied to its sums: bias, rescaling, clamp. See `emitting.vectors.Finish`."""

    bits: int  #: The bits of an output: 32 for floats, 8 or 16 for integers.
    rounding: int  #: One of `library.rounding`'s constants.
    table: Array  #: The values per channel, as `Finish` reads them.
    channels: int  #: The entries of a row of the table: the channels, padded.
    bounds: tuple[float, float, float]  #: (smallest output, largest output, zero point).


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

    table = node.cached(("table of floats", channels, times), [bias], make, shared=rows > _FEW)
    low, high = float_activation_range(activation)
    return Finishing(32, CLAMPED, table, rows, (float(low), float(high), 0.0))


def quantized_finishing(layer: QuantizedLayer, integer: bool, added: int = 0) -> Finishing | str:
    """Return the output stage of integer sums, a constant layer's requantization; or, if some channel's numbers are too large for
    it, a sentence that says so.

    Args:
        layer: the layer's parameters.
        integer: whether sums are int32; else they are float32.
        added: what the kernel adds to each input; each channel's offset makes up for it.
    """
    kind = layer.output.dtype
    channels = len(layer.scales)
    if not channels:
        return "there is nothing to compute."
    rows = _rows(channels)
    low, high = layer.clamp()

    def make() -> tuple[int, Array] | str:
        largest = 2.0**31 - 1 if integer else 2.0**24
        table = aligned((rows * _ROW_BYTES,), np.uint8)
        starts = table[: rows * 4].view(np.int32 if integer else np.float32)
        values = table[rows * 4 :].view(np.float64).reshape(3, rows)
        offsets = _plain_offsets(layer, kind, largest, -added, values)
        if offsets is not None:
            starts[:channels] = offsets
            return _rounding(layer.rounding, kind, low, layer.output.zero_point), table
        found = _scaling(layer.requantizer(), kind, largest)
        if isinstance(found, str):
            return found
        starts[:channels] = found.offsets
        if added:
            starts[:channels] += layer.row_sums() * -added
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


def _plain_offsets(layer: QuantizedLayer, kind: np.dtype, largest: float, added: int, values: Array) -> Array | None:
    """Write what `_scaling` returns into a table's `values` and return the offsets, where bounds for all channels together show that
    all sums are exact; else return None. Most layers of bytes are such.
    """
    from oplet.kernels.requantization import Rounding  # here, as float layers need none; so below

    is_float = layer.rounding is Rounding.FLOAT
    if not is_float and (layer.rounding is not Rounding.DOUBLE or kind.itemsize != 1):
        return None
    rows, channels = layer.rows(), len(layer.scales)
    weights = rows if rows.flags.c_contiguous else rows.T
    taps = rows.shape[1] if rows.dtype == np.int8 and weights.flags.c_contiguous else 0
    sums: Array = np.empty((2, channels), np.int64)
    if not taps:
        sums[0], sums[1] = layer.row_sums(), layer.widest
    offsets = np.zeros(channels, np.int64) if layer.bias is None else layer.bias.data.reshape(-1).astype(np.int64)
    left = 0 if layer.centred else layer.source.zero_point
    held = np.zeros(1, np.int64)
    read = weights.reshape(-1) if taps else _NO_WEIGHTS
    scales = layer.scales
    factors = scales, scales.view(np.int64), is_float, layer.largest, largest
    RESCALING.compiled()(read, taps, *rows.strides, sums, offsets, left, added, *factors, values, held)
    return offsets if held[0] else None


def _scaling(requantizer: Requantization, kind: np.dtype, largest: float) -> _Scaling | str:
    """Return numbers with which `Finish` computes the outputs exactly; a sentence if there are none for some channel.

    Args:
        requantizer: the layer's requantization.
        kind: the type of the outputs.
        largest: the largest sum that is exact.
    """
    from oplet.kernels.requantization import Rounding

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
    rounding = _rounding(requantizer.rounding, kind, requantizer.low, requantizer.zero_point)
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


def _rounding(rounding: Rounding, kind: np.dtype, low: int, zero_point: int) -> int:
    """Return the rounding mode of a layer whose sums are all exact in float64."""
    from oplet.kernels.requantization import Rounding

    if rounding is Rounding.FLOAT:
        return AWAY
    return NEAREST_ABOVE if kind.itemsize == 1 and low >= zero_point else NEAREST
