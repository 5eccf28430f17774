"""Spectrograms and MFCCs. Numerics: tensorflow/core/kernels/spectrogram.cc, mfcc.cc, mfcc_mel_filterbank.cc, mfcc_dct.cc."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from oplet import Node, TensorType, charge, checkpoint, ensure
from oplet.kernels.arrays import Array, Shape
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.numerics.dense import PORTION, portions, product
from oplet_flex_ops.numerics.operator import Step, operator

_FLOAT32, _INT32 = TensorType.FLOAT32, TensorType.INT32
#: The samples that are transformed at a time, in whole windows.
_AT_ONCE = 1 << 16
_FLOOR = 1e-12


def _spectrogram_window_of(attributes: Attributes) -> tuple[int, int, int]:
    window = attributes.integer("window_size", least=2, most=2**30)
    return window, attributes.integer("stride", least=1), 1 << (window - 1).bit_length()


def _spectrogram_shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
    source = node.inputs[0]
    ensure(source.ndim == 2, f"{source} must have 2 dimensions, samples and channels.")
    window, stride, length = _spectrogram_window_of(attributes)
    samples, channels = source.shape
    count = 0 if samples < window else 1 + (samples - window) // stride
    return [(channels, count, 1 + length // 2)]


@operator("FLOAT32 -> FLOAT32", _spectrogram_shapes)
def AUDIOSPECTROGRAM(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
    """Compute FFT magnitudes of audio windows, (samples, channels) to (channels, windows, bins)."""
    [source], [output] = inputs, outputs
    window, stride, length = _spectrogram_window_of(attributes)
    squared = attributes.flag("magnitude_squared", default=False)
    if not output.size:
        return lambda: None
    charge(40 * length)
    hann = 0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(window) / window)
    windows = np.lib.stride_tricks.sliding_window_view(source.T, window, axis=1)[:, ::stride]
    step = max(1, _AT_ONCE // length)

    def run() -> None:
        for heard, result in zip(windows, output):
            for start in range(0, len(heard), step):
                checkpoint()
                spectrum = np.fft.rfft(heard[start : start + step] * hann, length)
                power = spectrum.real**2 + spectrum.imag**2
                result[start : start + step] = power if squared else np.sqrt(power)

    return run


class _Bands(NamedTuple):
    """Mfcc's attributes: frequency limits in Hz, numbers of bands and coefficients."""

    upper: float
    lower: float
    channels: int
    coefficients: int


def _bands(attributes: Attributes) -> _Bands:
    found = _Bands(
        attributes.number("upper_frequency_limit", default=4000.0),
        attributes.number("lower_frequency_limit", default=20.0),
        attributes.integer("filterbank_channel_count", default=40, least=1, most=1 << 16),
        attributes.integer("dct_coefficient_count", default=13, least=1),
    )
    fits = found.coefficients <= found.channels
    ensure(
        fits, f"dct_coefficient_count is {found.coefficients}; it must be from 1 to filterbank_channel_count, {found.channels}."
    )
    fits = 0 <= found.lower < found.upper
    ensure(fits, f"the frequency limits {found.lower:g} and {found.upper:g} must ascend and not be negative.")
    return found


def _mel(hertz: Array) -> Array:
    result: Array = 1127.0 * np.log1p(hertz / 700.0)
    return result


def _filter_bank(bands: _Bands, bins: int, rate: int) -> tuple[int, Array]:
    """Return the mel filterbank: the first bin used, and for each band the weights from that bin on."""
    ensure(rate > 0, f"the sample rate is {rate}; it must be above zero.")
    low, high = _mel(np.array([bands.lower, bands.upper]))
    centres = low + (high - low) / (bands.channels + 1) * np.arange(1, bands.channels + 2)
    hertz_per_bin = 0.5 * rate / (bins - 1)
    start, end = int(1.5 + bands.lower / hertz_per_bin), int(bands.upper / hertz_per_bin)
    if end >= bins:  # all bands are empty if one reaches beyond the last bin
        return start, np.zeros((0, bands.channels))
    places = _mel(np.arange(start, end + 1) * hertz_per_bin)
    band = np.searchsorted(centres[:-1], places, side="left") - 1
    before = np.where(band >= 0, centres[band], low)
    share = (centres[band + 1] - places) / (centres[band + 1] - before)
    # A column on each side for the halves of bins that belong to no band.
    weights = np.zeros((len(places), bands.channels + 2))
    row = np.arange(len(places))
    weights[row, band + 1] = share
    weights[row, band + 2] = 1 - share
    return start, weights[:, 1:-1]


def _mfcc_shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
    spectrogram, rate = node.inputs
    ensure(spectrogram.ndim == 3, f"the spectrogram {spectrogram} must have 3 dimensions.")
    ensure(spectrogram.shape[2] >= 2, f"the spectrogram {spectrogram} must have at least 2 bins.")
    ensure(rate.size == 1, f"the sample rate {rate} must be one value.")
    return [(*spectrogram.shape[:2], _bands(attributes).coefficients)]


@operator("FLOAT32, INT32 -> FLOAT32", _mfcc_shapes)
def MFCC(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
    """Compute mel-frequency cepstral coefficients of a spectrogram, (channels, windows, bins) to (channels, windows,
    coefficients).
    """
    [spectrogram, rate], [output] = inputs, outputs
    bands = _bands(attributes)
    charge(8 * bands.channels * (bands.coefficients + spectrogram.shape[2]))
    angles = np.pi / bands.channels * (np.arange(bands.channels) + 0.5)
    cosines = np.sqrt(2.0 / bands.channels) * np.cos(angles[:, None] * np.arange(bands.coefficients))
    known: dict[int, tuple[int, Array]] = {}

    def run() -> None:
        key = rate.item()
        if key not in known:
            known.clear()
            known[key] = _filter_bank(bands, spectrogram.shape[2], key)
        start, weights = known[key]
        if not len(weights):
            output.fill(0)
            return
        wide = max(bands.channels, len(weights))
        for part in portions(spectrogram.shape[:2], max(1, PORTION // wide)):
            magnitudes = np.sqrt(spectrogram[part][..., start : start + len(weights)].astype(np.float64))
            output[part] = product(np.log(np.maximum(product(magnitudes, weights), _FLOOR)), cosines)

    return run
