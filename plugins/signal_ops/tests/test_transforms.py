"""SignalRfft and SignalIrfft as ops: types, rows, filling up, and tflite-micro's own numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

T = {"float32": 0, "int32": 2, "int16": 7}


def signal(dtype: str, *shape: int) -> Any:
    random = np.random.default_rng(sum(shape))
    if dtype == "float32":
        return random.normal(0, 1000, shape).astype(np.float32)
    limits = np.iinfo(dtype)
    values = random.integers(limits.min, limits.max + 1, shape).astype(dtype)
    return np.where(random.random(shape) < 0.1, limits.min, values).astype(dtype)


@pytest.mark.parametrize("dtype", ["int16", "int32"])
@pytest.mark.parametrize("length", [4, 6, 10, 16, 30, 64, 100, 240, 512, 2048])
def test_integers_are_tflite_micro_s(one_op: Any, length: int, dtype: str) -> None:
    options = {"T": T[dtype], "fft_length": length}
    one_op("SignalRfft", options).check([signal(dtype, 2, length)])
    one_op("SignalIrfft", options).check([signal(dtype, 2, length + 2)])


@pytest.mark.parametrize("length", [4, 30, 512])
def test_floats_are_tflite_micro_s_but_for_the_last_bits(one_op: Any, length: int) -> None:
    options = {"T": T["float32"], "fft_length": length}
    for op, feed in (("SignalRfft", signal("float32", 2, length)), ("SignalIrfft", signal("float32", 2, length + 2))):
        [[ours]], [[theirs]] = (run([feed]) for run in (one_op(op, options).run, one_op(op, options).run_on_micro))
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6 * np.abs(theirs).max())


def test_a_recorded_spectrum(one_op: Any) -> None:
    # What tflite-micro gave for these samples.
    samples = np.array([1000, -2000, 3000, 12000, -7000, 31000, -32768, 5], np.int16)
    spectrum = one_op("SignalRfft", {"T": 7, "fft_length": 8}).run_once(samples)
    assert spectrum.tolist() == [655, 0, -2976, -2614, 2970, -2124, 4976, 6326, -9595, 0]


@pytest.mark.parametrize("dtype", ["int16", "int32", "float32"])
def test_short_signals_are_filled_up_with_zeros(one_op: Any, dtype: str) -> None:
    samples = signal(dtype, 3, 2, 11)
    short = one_op("SignalRfft", {"T": T[dtype], "fft_length": 16}).run_once(samples)
    whole = one_op("SignalRfft", {"T": T[dtype], "fft_length": 16}).run_once(np.pad(samples, ((0, 0), (0, 0), (0, 5))))
    assert short.shape == (3, 2, 18)
    np.testing.assert_array_equal(short, whole)
    if dtype != "float32":
        one_op("SignalRfft", {"T": T[dtype], "fft_length": 16}).check([samples])


@pytest.mark.parametrize("dtype", ["int16", "int32", "float32"])
def test_each_row_is_transformed_by_itself(one_op: Any, dtype: str) -> None:
    rows = signal(dtype, 2, 3, 32)
    forth, back = ((op, {"T": T[dtype], "fft_length": 32}) for op in ("SignalRfft", "SignalIrfft"))
    spectra = one_op(*forth).run_once(rows)
    np.testing.assert_array_equal(spectra[1, 2], one_op(*forth).run_once(rows[1, 2]))
    signals = one_op(*back).run_once(spectra)
    np.testing.assert_array_equal(signals[1, 2], one_op(*back).run_once(spectra[1, 2]))
    if dtype == "float32":
        np.testing.assert_allclose(signals, rows, rtol=1e-4, atol=1e-2)


def test_what_follows_the_frequencies_that_are_needed_is_ignored(one_op: Any) -> None:
    op = one_op("SignalIrfft", {"T": 7, "fft_length": 8})
    spectrum = signal("int16", 2, 16)
    np.testing.assert_array_equal(op.run_once(spectrum), op.run_once(spectrum[:, :10].copy()))


def test_there_may_be_no_rows(one_op: Any) -> None:
    assert one_op("SignalRfft", {"T": 7, "fft_length": 8}).run_once(np.empty((0, 5), np.int16)).shape == (0, 10)
    assert one_op("SignalIrfft", {"T": 0, "fft_length": 8}).run_once(np.empty((0, 10), np.float32)).shape == (0, 8)


@pytest.mark.parametrize(
    ("op", "options", "shape", "reason"),
    [
        ("SignalRfft", {"T": 7}, [8], "'fft_length' is missing"),
        ("SignalRfft", {"fft_length": 8}, [8], "'T' is missing"),
        ("SignalRfft", {"T": 2, "fft_length": 8}, [8], r"'T' is 2 \(INT32\), but tensor 0.*INT16"),
        ("SignalRfft", {"T": 9, "fft_length": 8}, [8], "'T' is 9"),
        ("SignalRfft", {"T": 7, "fft_length": 9}, [8], "length is 9; it must be even"),
        ("SignalRfft", {"T": 7, "fft_length": 2}, [2], "length is 2; it must be even, from 4"),
        ("SignalRfft", {"T": 7, "fft_length": 1 << 30}, [8], "length is 1073741824"),
        ("SignalRfft", {"T": 7, "fft_length": -8}, [8], "'fft_length' is -8"),
        ("SignalRfft", {"T": 7, "fft_length": 14}, [8], "length is 14, a multiple of 7"),
        ("SignalRfft", {"T": 7, "fft_length": 8}, [9], "more than the 8 samples"),
        ("SignalRfft", {"T": 7, "fft_length": 8}, [], "at least one dimension"),
        ("SignalIrfft", {"T": 7, "fft_length": 8}, [8], "5 or more of them for an FFT of length 8"),
        ("SignalIrfft", {"T": 7, "fft_length": 8}, [11], "pairs of values"),
        ("SignalIrfft", {"T": 7, "fft_length": 22}, [24], "a multiple of 11"),
        ("SignalIrfft", {"T": 7, "fft_length": 8}, [], "at least one dimension"),
    ],
)
def test_what_has_no_transform_is_refused(one_op: Any, op: str, options: Any, shape: list[int], reason: str) -> None:
    with pytest.raises(RuntimeError, match=f"(?s){op}.*{reason}|{reason}.*{op}"):
        one_op(op, options).interpreter([np.zeros(shape, np.int16)])
