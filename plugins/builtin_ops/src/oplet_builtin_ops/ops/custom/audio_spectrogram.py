"""AudioSpectrogram: magnitudes of the Fourier transforms of windows of sound, (samples, channels) to (channels, windows, bins).

Numerics: tflite/kernels/audio_spectrogram.cc, internal/spectrogram.cc
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oplet import Context, Node, Registration, TensorType, charge, checkpoint, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands
from oplet_builtin_ops.custom_options import CustomOptions

#: The samples that are transformed at a time, in whole windows; bytes per sample of a window: window, weights, spectrum, squares.
_AT_ONCE, _BYTES_PER_SAMPLE = 1 << 16, 40


class Settings(NamedTuple):
    """The custom options, and the FFT length derived from them."""

    window: int
    stride: int
    squared: bool
    length: int


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 1)
    source, output = node.inputs[0], node.outputs[0]
    options = CustomOptions(node)
    window, stride = options.integer("window_size"), options.integer("stride")
    ensure_type(source, TensorType.FLOAT32)
    ensure_type(output, TensorType.FLOAT32)
    ensure(source.ndim == 2, f"{source} must have 2 dimensions, samples and channels.")
    ensure(2 <= window < 2**30, f"window_size is {window}; it must be at least 2 and below 2**30.")
    ensure(stride >= 1, f"stride is {stride}; it must be at least 1.")
    length = 1 << (window - 1).bit_length()
    samples, channels = source.shape
    count = 0 if samples < window else 1 + (samples - window) // stride
    context.resize_tensor(output, (channels, count, 1 + length // 2))
    node.prepared = Settings(window, stride, options.boolean("magnitude_squared"), length)


def bind(context: Context, node: Node) -> Thunk:
    source, output = node.inputs[0].data, node.outputs[0].data
    settings: Settings = node.prepared
    if not output.size:
        return lambda: None
    charge(_BYTES_PER_SAMPLE * settings.length)
    hann = 0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(settings.window) / settings.window)
    windows = np.lib.stride_tricks.sliding_window_view(source.T, settings.window, axis=1)[:, :: settings.stride]
    count = windows.shape[1]
    step = max(1, min(_AT_ONCE // settings.length, count))
    weighted = np.empty((step, settings.window), np.float64)

    def run() -> None:
        for heard, result in zip(windows, output):
            for start in range(0, count, step):
                checkpoint()
                part = result[start : start + step]
                scratch = weighted[: len(part)]
                np.multiply(heard[start : start + step], hann, scratch)
                spectrum = np.fft.rfft(scratch, settings.length)
                part[...] = spectrum.real**2 + spectrum.imag**2
                if not settings.squared:
                    np.sqrt(part, part)

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(TensorType.FLOAT32,))
