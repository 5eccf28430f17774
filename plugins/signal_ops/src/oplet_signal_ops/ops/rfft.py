"""SignalRfft: FFT of a real signal, along the last axis.

The signal is filled up with zeros to the option `fft_length`. The result has `fft_length / 2 + 1` pairs of a real and an
imaginary part, which are two values, as the format has no complex integers.

Numerics: signal/micro/kernels/rfft.cc of tflite-micro; see `oplet_signal_ops.real_fft`.
"""

from __future__ import annotations

import math

from oplet import Context, Node, Registration, ensure
from oplet.kernels.arrays import Thunk
from oplet_signal_ops.real_fft import TYPES, read_transform, transform


def prepare(context: Context, node: Node) -> None:
    signal, spectrum, length = read_transform(node)
    ensure(signal.shape[-1] <= length, f"{signal} has more than the {length} samples of the FFT.")
    context.resize_tensor(spectrum, (*signal.shape[:-1], length + 2))
    node.prepared = context.add_temporary(node, (*signal.shape[:-1], length), signal.type)


def bind(context: Context, node: Node) -> Thunk:
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


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=TYPES)
