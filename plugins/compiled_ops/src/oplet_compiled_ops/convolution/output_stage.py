"""Tables of the output stage (bias, rescaling), made from the numpy kernels' layer parameters."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oplet import Node, Tensor
from oplet.kernels.activations import float_activation_range
from oplet.kernels.requantization import Requantization, Rounding
from oplet.records import Row
from oplet.schema.enums import ActivationFunctionType
from oplet_builtin_ops.kit.layers import QuantizedLayer
from oplet_compiled_ops.library.levels import LANES
from oplet_compiled_ops.library.memory import Array, aligned, padded_rows
from oplet_compiled_ops.library.rounding import AWAY, CLAMPED, FLOOR, NEAREST, NEAREST_ABOVE

__all__ = ["Finishing", "float_finishing", "quantized_finishing"]

#: The most vectors of a panel; panels read the table to their end.
_WIDEST = 4
#: Bytes of a table per channel of integers.
_ROW_BYTES = 28


class Finishing(Row):
    """Parameters of a kernel's output stage: what becomes of its sums (bias, rescaling, clamp). See `emitting.vectors.Finish`.

    Attributes:
        bits: the bits of an output: 32 for floats, 8 or 16 for integers.
        rounding: one of `library.rounding`'s constants.
        table: the values per channel, as `Finish` reads them.
        channels: the entries of a row of the table, more than there are channels.
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


def quantized_finishing(layer: QuantizedLayer, integer: bool, added: Callable[[], Array] | None = None) -> Finishing | None:
    """Return the output stage of integer sums: a constant layer's requantization; None if its numbers are too large for it.

    Args:
        layer: the layer's parameters.
        integer: whether sums are int32; else they are float32.
        added: returns one integer per channel to add to its sums, only if `integer`; None for none.
    """
    requantizer = layer.requantizer()
    kind = layer.output.dtype
    if not requantizer.fits(kind) or requantizer.limit > (2.0**31 - 1 if integer else 2.0**24):
        return None
    factors = requantizer.factors
    if not len(factors) or requantizer.limit * float(np.abs(factors).max()) > 2.0**30:
        return None
    rounding = _rounding(requantizer, kind)
    channels = len(factors)
    rows = _rows(channels)

    def make() -> Array:
        table = aligned((rows * _ROW_BYTES,), np.uint8)
        starts = table[: rows * 4].view(np.int32 if integer else np.float32)
        values = table[rows * 4 :].view(np.float64).reshape(3, rows)
        starts[:channels] = requantizer.offsets
        if added is not None:
            starts[:channels] += added()
        values[0, :channels] = factors
        more = np.float64(0.5)
        if rounding in (NEAREST, NEAREST_ABOVE):
            more = _hairs(requantizer)
        values[1, :channels] = more + requantizer.nudges
        values[2, :channels] = more - requantizer.nudges + 2 * requantizer.lifts
        return table

    key = "table of integers", integer, layer.centred, layer.bound, layer.source.type, kind
    table = layer.node.cached(key, [layer.weights, layer.bias], make, shared=True)
    high = max(requantizer.low, requantizer.high)
    return Finishing(
        8 * kind.itemsize, rounding, table, rows, (float(requantizer.low), float(high), float(requantizer.zero_point))
    )


def _hairs(requantizer: Requantization) -> Array:
    """Return, per channel, half of the smallest difference of two scaled sums; with it added, none lies halfway between two
    outputs.
    """
    unit_bits = 15 if requantizer.rounding is Rounding.WIDE else 31
    return np.asarray(np.ldexp(0.5, requantizer.multipliers[1] - unit_bits))


def _rounding(requantizer: Requantization, kind: np.dtype) -> int:
    """Choose the rounding mode for a layer, one of `library.rounding`'s constants."""
    if requantizer.rounding is Rounding.FLOAT:
        return AWAY
    # Outputs without a clamp need float64 to represent all multiples of that unit.
    largest = np.minimum(requantizer.limit * np.abs(requantizer.factors), 2.0 ** (8 * kind.itemsize + 1)) + 2
    if (largest > _hairs(requantizer) * 2.0**53).any():
        return FLOOR
    return NEAREST_ABOVE if kind.itemsize == 1 and requantizer.low >= requantizer.zero_point else NEAREST
