"""Fourier transforms, complex numbers and audio agree with TensorFlow's kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from plugins.flex_ops.tests.agreement import Case, check_all, ops_of, refuses

from oplet import TensorType

Array = NDArray[Any]
PRECISIONS = [("float32", "complex64"), ("float64", "complex128")]
RNG = np.random.default_rng(0)


def noise(type: str, *shape: int) -> Array:
    values = RNG.normal(size=shape)
    if type.startswith("complex"):
        values = values + 1j * RNG.normal(size=shape)
    return values.astype(type)


def transform_cases() -> Iterator[Case]:
    for real, complex in PRECISIONS:
        types = {"Treal": TensorType[real.upper()], "Tcomplex": TensorType[complex.upper()]}
        tolerance = 1e-4 if real == "float32" else 1e-10
        for axes, name in ((1, ""), (2, "2D"), (3, "3D")):
            for batch in ((), (3,), (2, 2), (0,)):
                shape = (6, 5, 8)[3 - axes :]
                for op in ("FFT", "IFFT"):
                    yield Case(op + name, [noise(complex, *batch, *shape)], {"Tcomplex": types["Tcomplex"]}, (), tolerance)
                for constant in ((), (1,)):
                    for length in ((6, 5, 8), (4, 5, 7), (6, 3, 5), (1, 1, 1)):
                        size = np.array(length[3 - axes :], "int32")
                        yield Case("RFFT" + name, [noise(real, *batch, *shape), size], types, constant, tolerance)
                        given = noise(complex, *batch, *shape[:-1], shape[-1] // 2 + 1)
                        yield Case("IRFFT" + name, [given, size], types, constant, tolerance)


def part_cases() -> Iterator[Case]:
    for real, complex in PRECISIONS:
        types = {"T": TensorType[complex.upper()], "Tout": TensorType[real.upper()]}
        for shape in ((), (3, 4), (0,)):
            values = noise(complex, *shape)
            for op in ("Angle", "ComplexAbs", "Real", "Imag"):
                yield Case(op, [values], types)
            yield Case("Conj", [values], {"T": types["T"]})
        made = {"T": types["Tout"], "Tout": types["T"]}
        yield Case("Complex", [noise(real, 3, 1), noise(real, 4)], made)


def audio_cases() -> Iterator[Case]:
    for window, stride, squared in ((256, 128, True), (200, 100, False), (16, 5, True)):
        given = {"window_size": window, "stride": stride, "magnitude_squared": squared}
        yield Case("AudioSpectrogram", [noise("float32", 1000, 2)], given, (), 1e-4)
        yield Case("AudioSpectrogram", [noise("float32", 10, 1)], given)
    spectrogram = np.abs(noise("float32", 2, 5, 257))
    yield Case("Mfcc", [spectrogram, np.array(16000, "int32")], {}, (), 1e-4)
    limits = {"upper_frequency_limit": 7500.0, "lower_frequency_limit": 100.0, "filterbank_channel_count": 26,
              "dct_coefficient_count": 20}  # fmt: skip
    yield Case("Mfcc", [spectrogram, np.array(16000, "int32")], limits, (1,), 1e-4)
    yield Case("Mfcc", [spectrogram, np.array(4000, "int32")])
    sound = np.clip(noise("float32", 40, 2), -1.2, 1.2)
    yield Case("EncodeWav", [sound, np.array(8000, "int32")])
    file = np.array(wav((32767 * np.clip(sound, -1, 1)).astype("<i2")), object)
    for channels, samples in ((-1, -1), (1, 20), (3, 60)):
        yield Case("DecodeWav", [file], {"desired_channels": channels, "desired_samples": samples})


def wav(samples: Array) -> bytes:
    """A file of int16 samples of shape (samples, channels)."""
    import io
    import wave

    written = io.BytesIO()
    with wave.open(written, "wb") as file:
        file.setnchannels(samples.shape[1])
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(samples.tobytes())
    return written.getvalue()


GROUPS = [transform_cases, part_cases, audio_cases]


@pytest.mark.sweep
@pytest.mark.parametrize("cases", GROUPS, ids=lambda cases: cases.__name__)
def test_signals_agree_with_tensorflow(cases: Any) -> None:
    count, _ = check_all(cases())
    assert count >= 10


C64 = {"Treal": TensorType.FLOAT32, "Tcomplex": TensorType.COMPLEX64}


@pytest.mark.parametrize(
    ("refused", "made", "sentence"),
    [
        (Case("FFT2D", [noise("complex64", 4)], {"Tcomplex": TensorType.COMPLEX64}), ["COMPLEX64"], "2 dimensions or more"),
        (Case("RFFT", [noise("float32", 4), np.array([-1], "int32")], C64), ["COMPLEX64"], "must not be negative"),
        (Case("RFFT", [noise("float32", 4), np.array([5], "int32")], C64), ["COMPLEX64"], "must be at least 5"),
        (Case("RFFT2D", [noise("float32", 4, 4), np.array([4], "int32")], C64), ["COMPLEX64"], "it must hold 2"),
        (Case("DecodeWav", [np.array(b"RIFFxxxxWAVEfmt ", object)]), ["FLOAT32", "INT32"], "WAV file"),
        (Case("Mfcc", [noise("float32", 2, 5), np.array(16000, "int32")]), ["FLOAT32"], "3 dimensions"),
    ],
    ids=lambda value: value.op if isinstance(value, Case) else "",
)
def test_what_tensorflow_refuses_is_refused_with_a_sentence(refused: Case, made: list[str], sentence: str) -> None:
    assert sentence in refuses(refused, [TensorType[name] for name in made])


def test_every_operator_of_the_family_is_compared() -> None:
    assert ops_of("signal") == {each.op for cases in GROUPS for each in cases()}
