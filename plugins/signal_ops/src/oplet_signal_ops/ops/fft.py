"""FFT of real signals and back, and the scaling before it.

SignalFftAutoScale: shifts the signal left as far as its largest sample allows; also returns the number of bits.

Numerics: signal/src/fft_auto_scale.cc and max_abs.cc of tflite-micro, with what happens there to samples of -32768: their
absolute value overflows to -32768 and replaces the maximum so far, which then is the largest of the samples behind.

SignalRfft: FFT of a real signal, along the last axis.

The signal is filled up with zeros to the option `fft_length`. The result has `fft_length / 2 + 1` pairs of a real and an
imaginary part, which are two values, as the format has no complex integers.

Numerics: signal/micro/kernels/rfft.cc of tflite-micro; see `oplet_signal_ops.real_fft`.

SignalIrfft: inverse FFT of a spectrum to a real signal, along the last axis.

The spectrum is what SignalRfft gives: pairs of a real and an imaginary part, `fft_length / 2 + 1` of them. What comes behind
them is ignored.

Numerics: signal/micro/kernels/irfft.cc of tflite-micro; see `oplet_signal_ops.real_fft`.
"""

from __future__ import annotations

import math

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.operands import ensure_operands, ensure_vector
from oplet_signal_ops.real_fft import TYPES, inverse_transform, read_transform, transform

_LOWEST = -0x8000


def prepare_scale(context: Context, node: Node) -> None:
    ensure_operands(node, 1, 2)
    signal, (output, scale_bits) = node.inputs[0], node.outputs
    ensure_vector(signal, TensorType.INT16)
    ensure_type(output, TensorType.INT16)
    ensure_type(scale_bits, TensorType.INT32)
    context.resize_tensor(output, signal.shape)
    context.resize_tensor(scale_bits, ())


def bind_scale(context: Context, node: Node) -> Thunk:
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


AUTO_SCALE = Registration(prepare=prepare_scale, bind=bind_scale, pure=True, types=(TensorType.INT16,))


def prepare_rfft(context: Context, node: Node) -> None:
    signal, spectrum, length = read_transform(node)
    ensure(signal.shape[-1] <= length, f"{signal} has more than the {length} samples of the FFT.")
    context.resize_tensor(spectrum, (*signal.shape[:-1], length + 2))
    node.prepared = context.add_temporary(node, (*signal.shape[:-1], length), signal.type)


def bind_rfft(context: Context, node: Node) -> Thunk:
    signal, filled, spectrum = node.inputs[0].data, node.prepared.data, node.outputs[0].data
    length, samples = filled.shape[-1], signal.shape[-1]
    apply = node.cached(("transform", length, signal.dtype), (), lambda: transform(length, signal.dtype))
    rows = math.prod(signal.shape[:-1])
    source, target = filled.reshape(rows, length), spectrum.reshape(rows, length + 2)

    def run() -> None:
        filled[..., :samples] = signal
        filled[..., samples:] = 0  # the arena lends this memory to others between invokes
        apply(source, target)

    return run


RFFT = Registration(prepare=prepare_rfft, bind=bind_rfft, pure=True, types=TYPES)


def prepare_irfft(context: Context, node: Node) -> None:
    spectrum, signal, length = read_transform(node)
    values = spectrum.shape[-1]
    ensure(
        values % 2 == 0 and values >= length + 2,
        f"{spectrum} must have pairs of values, {length // 2 + 1} or more of them for an FFT of length {length}.",
    )
    context.resize_tensor(signal, (*spectrum.shape[:-1], length))


def bind_irfft(context: Context, node: Node) -> Thunk:
    spectrum, signal = node.inputs[0].data, node.outputs[0].data
    length = signal.shape[-1]
    apply = node.cached(("transform", length, spectrum.dtype), (), lambda: inverse_transform(length, spectrum.dtype))
    rows = math.prod(signal.shape[:-1])
    source, target = spectrum.reshape(rows, spectrum.shape[-1])[:, : length + 2], signal.reshape(rows, length)

    def run() -> None:
        apply(source, target)

    return run


IRFFT = Registration(prepare=prepare_irfft, bind=bind_irfft, pure=True, types=TYPES)
