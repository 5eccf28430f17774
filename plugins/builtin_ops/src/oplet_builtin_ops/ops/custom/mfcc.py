"""Mfcc: mel-frequency cepstral coefficients of a spectrogram, (channels, samples, bins) to (channels, samples, coefficients).

The square root of each bin goes to the two mel bands beside it, logarithms of the bands through a discrete cosine
transform. Numerics: tflite/kernels/mfcc.cc, internal/mfcc.cc, mfcc_mel_filterbank.cc, mfcc_dct.cc
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oplet import Context, Node, Registration, TensorType, charge, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.operands import ensure_operands
from oplet_builtin_ops.custom_options import CustomOptions

_FLOOR = 1e-12


class Settings(NamedTuple):
    """The custom options: frequency limits in Hz, number of bands and coefficients."""

    upper: float
    lower: float
    bands: int
    coefficients: int


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2)
    (spectrogram, rate), output = node.inputs, node.outputs[0]
    options = CustomOptions(node)
    settings = Settings(
        float(options.integer("upper_frequency_limit")),
        float(options.integer("lower_frequency_limit")),
        options.integer("filterbank_channel_count"),
        options.integer("dct_coefficient_count"),
    )
    ensure_type(spectrogram, TensorType.FLOAT32)
    ensure_type(output, TensorType.FLOAT32)
    ensure_type(rate, TensorType.INT32)
    ensure(spectrogram.ndim == 3, f"the spectrogram {spectrogram} must have 3 dimensions.")
    ensure(rate.size == 1, f"the sample rate {rate} must be one value.")
    ensure(
        1 <= settings.coefficients <= settings.bands,
        f"dct_coefficient_count is {settings.coefficients}; it must be from 1 to filterbank_channel_count, {settings.bands}.",
    )
    ensure(
        0 <= settings.lower < settings.upper,
        f"the frequency limits {settings.lower:g} and {settings.upper:g} must ascend and not be negative.",
    )
    ensure(spectrogram.shape[2] >= 2, f"the spectrogram {spectrogram} must have at least 2 bins.")
    context.resize_tensor(output, (*spectrogram.shape[:2], settings.coefficients))
    node.prepared = settings


def _filterbank(settings: Settings, bins: int, rate: int) -> tuple[int, Array]:
    """Return the mel filterbank: the first spectrogram bin used, and for each band the weights from that bin on."""
    ensure(rate > 0, f"the sample rate is {rate}; it must be above zero.")
    low, high = _mel(np.array([settings.lower, settings.upper]))
    spacing = (high - low) / (settings.bands + 1)
    centres = low + spacing * np.arange(1, settings.bands + 2)
    hertz_per_bin = 0.5 * rate / (bins - 1)
    start, end = int(1.5 + settings.lower / hertz_per_bin), int(settings.upper / hertz_per_bin)
    if end >= bins:
        return start, np.zeros((0, settings.bands))
    places = _mel(np.arange(start, end + 1) * hertz_per_bin)
    band = np.searchsorted(centres[:-1], places, side="left") - 1
    before = np.where(band >= 0, centres[band], low)
    share = (centres[band + 1] - places) / (centres[band + 1] - before)
    # One more band on each side for bins that belong to no band.
    weights = np.zeros((len(places), settings.bands + 2))
    row = np.arange(len(places))
    weights[row, band + 1] = share
    weights[row, band + 2] = 1 - share
    return start, weights[:, 1:-1]


def _mel(hertz: Array) -> Array:
    return 1127.0 * np.log1p(hertz / 700.0)


def _cosines(settings: Settings) -> Array:
    places = np.pi / settings.bands * (np.arange(settings.bands) + 0.5)
    return np.asarray(np.sqrt(2.0 / settings.bands) * np.cos(np.arange(settings.coefficients)[:, None] * places))


def bind(context: Context, node: Node) -> Thunk:
    spectrogram, rate, output = node.inputs[0].data, node.inputs[1].data.reshape(-1), node.outputs[0].data
    settings: Settings = node.prepared
    charge(8 * settings.bands * (3 * settings.coefficients + 2))
    cosines = _cosines(settings).T
    banks: dict[int, tuple[int, Array]] = {}

    def run() -> None:
        key = int(rate[0])
        if key not in banks:
            banks.clear()
            charge(8 * settings.bands * spectrogram.shape[2])
            banks[key] = _filterbank(settings, spectrogram.shape[2], key)
        start, weights = banks[key]
        if not len(weights):
            # In LiteRT all bands are empty if one reaches beyond the last bin.
            output.fill(0)
            return
        charge(16 * (settings.bands + settings.coefficients) * (spectrogram.size // spectrogram.shape[2]) + 8 * spectrogram.size)
        magnitudes = np.sqrt(spectrogram[..., start : start + len(weights)].astype(np.float64))
        output[...] = np.log(np.maximum(magnitudes @ weights, _FLOOR)) @ cosines

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(TensorType.FLOAT32,))
