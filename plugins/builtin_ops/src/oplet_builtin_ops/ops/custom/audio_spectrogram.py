"""AudioSpectrogram: magnitudes of the Fourier transforms of windows of sound, (samples, channels) to (channels, windows, bins).

Numerics: tflite/kernels/audio_spectrogram.cc, internal/spectrogram.cc
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet_builtin_ops.custom_options import CustomOptions
from oplet_builtin_ops.shaping.shapes import Thunk, ensure_operands


class Settings(NamedTuple):
    """The custom options, and how long the transforms are."""

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
    hann = 0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(settings.window) / settings.window)
    windows = np.lib.stride_tricks.sliding_window_view(source.T, settings.window, axis=1)[:, :: settings.stride]
    weighted = np.empty(windows.shape, np.float64)

    def run() -> None:
        np.multiply(windows, hann, weighted)
        spectrum = np.fft.rfft(weighted, settings.length)
        output[...] = spectrum.real**2 + spectrum.imag**2
        if not settings.squared:
            np.sqrt(output, output)

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(TensorType.FLOAT32,))
