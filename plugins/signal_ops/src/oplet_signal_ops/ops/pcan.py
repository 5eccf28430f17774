"""SignalPCAN: automatic gain control of each channel by its own noise (per-channel amplitude normalization).

The gain comes from a table of four-valued pieces, one piece per power of two of the noise estimate; the signal-to-noise ratio
is then compressed: a small ratio gives its square (scaled), a larger one itself less one.

Numerics: signal/src/pcan_argc_fixed.cc of tflite-micro, with its wrap-around.
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, checkpoint, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.operands import ensure_operands, ensure_vector
from oplet.kernels.options import integer
from oplet_signal_ops.nodes import AT_ONCE

#: Values of a gain table: two of their own for 0 and 1, and pieces of four for 2 to 31 bits, but three for 32.
_TABLE_SIZE = 125
_SNR_BITS = 12
_OUTPUT_BITS = 6


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 3, 1)
    (signal, noise, table), output = node.inputs, node.outputs[0]
    ensure_vector(signal, TensorType.UINT32)
    ensure_vector(noise, TensorType.UINT32)
    ensure_vector(table, TensorType.INT16)
    ensure_type(output, TensorType.UINT32)
    ensure(noise.shape == signal.shape, f"the noise estimate {noise} must have the shape of the signal {signal}.")
    ensure(table.size >= _TABLE_SIZE, f"the gain table {table} must have {_TABLE_SIZE} values.")
    node.prepared = integer(node.custom_map(), "snr_shift", most=63)
    context.resize_tensor(output, signal.shape)


def bind(context: Context, node: Node) -> Thunk:
    snr_shift = np.uint64(node.prepared)
    signal, noise, table = (tensor.data for tensor in node.inputs)
    output = node.outputs[0].data

    def run() -> None:
        wide = table.astype(np.int32)
        for start in range(0, len(signal), AT_ONCE):
            checkpoint()
            part = slice(start, start + AT_ONCE)
            snr = (signal[part] * table_gains(noise[part], wide) >> snr_shift).astype(np.uint32)
            square = (snr * snr) >> np.uint32(2 + 2 * _SNR_BITS - _OUTPUT_BITS)
            less_one = (snr >> np.uint32(_SNR_BITS - _OUTPUT_BITS)) - np.uint32(1 << _OUTPUT_BITS)
            np.copyto(output[part], np.where(snr < 2 << _SNR_BITS, square, less_one))

    return run


def table_gains(noise: Array, table: Array) -> Array:
    """Return gains, uint64, for noise estimates: a quadratic of the mantissa, with coefficients in `table` by the leading bit."""
    bits = np.frexp(noise.astype(np.float64))[1]
    piece = np.maximum(4 * bits - 6, 0)
    fraction = (((noise.astype(np.int64) << 11) >> bits) & 0x3FF).astype(np.int32)
    bend = (table[piece + 2] * fraction) >> 5
    gains = (((table[piece + 1] << 5) + bend) * fraction + (1 << 14)) >> 15
    gains += table[piece]
    # Noise of 0 to 2 has no piece but a value. Negative gains, of no sensible table, become huge ones of 32 bits.
    gains = np.where(noise <= 2, table[np.minimum(noise, 2)], gains)
    return gains.astype(np.int16).astype(np.uint32).astype(np.uint64)


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(TensorType.UINT32,))
