"""SignalIrfft: inverse FFT of a spectrum to a real signal, along the last axis.

The spectrum is what SignalRfft gives: pairs of a real and an imaginary part, `fft_length / 2 + 1` of them. What comes behind
them is ignored.

Numerics: signal/micro/kernels/irfft.cc of tflite-micro; see `oplet_signal_ops.real_fft`.
"""

from __future__ import annotations

import math

from oplet import Context, Node, Registration, ensure
from oplet.kernels.arrays import Thunk
from oplet_signal_ops.real_fft import TYPES, inverse_transform, read_transform


def prepare(context: Context, node: Node) -> None:
    spectrum, signal, length = read_transform(node)
    values = spectrum.shape[-1]
    ensure(
        values % 2 == 0 and values >= length + 2,
        f"{spectrum} must have pairs of values, {length // 2 + 1} or more of them for an FFT of length {length}.",
    )
    context.resize_tensor(signal, (*spectrum.shape[:-1], length))


def bind(context: Context, node: Node) -> Thunk:
    spectrum, signal = node.inputs[0].data, node.outputs[0].data
    length = signal.shape[-1]
    apply = node.cached(("transform", length, spectrum.dtype), (), lambda: inverse_transform(length, spectrum.dtype))
    rows = math.prod(signal.shape[:-1])
    source, target = spectrum.reshape(rows, spectrum.shape[-1])[:, : length + 2], signal.reshape(rows, length)

    def run() -> None:
        apply(source, target)

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=TYPES)
