"""SignalFftAutoScale: shifts the signal left as far as its largest sample allows; also returns the number of bits.

Numerics: signal/src/fft_auto_scale.cc and max_abs.cc of tflite-micro, with what happens there to samples of -32768: their
absolute value overflows to -32768 and replaces the maximum so far, which then is the largest of the samples behind.
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.operands import ensure_operands, ensure_vector

_LOWEST = -0x8000


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 1, 2)
    signal, (output, scale_bits) = node.inputs[0], node.outputs
    ensure_vector(signal, TensorType.INT16)
    ensure_type(output, TensorType.INT16)
    ensure_type(scale_bits, TensorType.INT32)
    context.resize_tensor(output, signal.shape)
    context.resize_tensor(scale_bits, ())


def bind(context: Context, node: Node) -> Thunk:
    signal, output, scale_bits = node.inputs[0].data, node.outputs[0].data, node.outputs[1].data
    if not signal.size:
        return lambda: scale_bits.fill(0)

    def run() -> None:
        low, high = int(signal.min()), int(signal.max())
        largest = max(-low, high) if low > _LOWEST else _largest_after_overflow(signal)
        bits = 15 - largest.bit_length() if largest > 0 else 0
        np.left_shift(signal, bits, output)
        scale_bits.fill(bits)

    return run


def _largest_after_overflow(signal: Array) -> int:
    """Return the largest absolute value as tflite-micro's int16 loop computes it, in which abs(-32768) overflows."""
    largest, *others = signal[np.flatnonzero(signal == _LOWEST)[-1] :].tolist()
    for sample in others:
        largest = sample if sample > largest else max(largest, -sample)
    return int(largest)


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(TensorType.INT16,))
