"""The ops without memory: each rule, followed one value at a time, and tflite-micro's own numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

RANDOM = np.random.default_rng(7)


def full(dtype: str, *shape: int) -> Any:
    """Values from the whole range."""
    limits = np.iinfo(dtype)
    return RANDOM.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)


def magnitudes(dtype: str, count: int) -> Any:
    """As many small values as large ones, with all that need few bits."""
    bits = RANDOM.integers(0, np.iinfo(dtype).bits + 1, count).tolist()
    drawn = [int(value) >> (np.iinfo(dtype).bits - n) if n else 0 for value, n in zip(full(dtype, count), bits)]
    return np.array([*range(70), *drawn, int(np.iinfo(dtype).max)], dtype)


# SignalWindow --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [0, 1, 12, 15, 31])
def test_a_window_multiplies_shifts_and_limits(one_op: Any, shift: int) -> None:
    weights, signal = full("int16", 8), full("int16", 2, 3, 8)
    signal[0, 0] = weights[0] = -(2**15)
    op = one_op("SignalWindow", {"shift": shift}, [weights])
    wanted = [
        max(-(2**15), min(2**15 - 1, int(x) * int(w) >> shift)) for row in signal.reshape(-1, 8) for x, w in zip(row, weights)
    ]
    assert op.run_once(signal).ravel().tolist() == wanted
    op.check([signal])


def test_a_window_may_be_laid_several_times_over_a_row(one_op: Any) -> None:
    weights, signal = full("int16", 4), full("int16", 2, 8)
    one_op("SignalWindow", {"shift": 12}, [weights]).check([signal])
    one_op("SignalWindow", {"shift": 12}).check([signal, weights])


# SignalEnergy --------------------------------------------------------------------------------------------------


def test_energies_are_squared_magnitudes_within_the_range_and_zero_outside(one_op: Any) -> None:
    spectrum = np.array([9, 9, 3, 4, -(2**15), -(2**15), 0, -5, 7, 7], np.int16)
    energies = one_op("SignalEnergy", {"start_index": 1, "end_index": 4}).run_once(spectrum)
    assert energies.tolist() == [0, 25, 2**31, 25, 0]


def test_energies_are_tflite_micro_s(one_op: Any) -> None:
    spectrum = full("int16", 514)
    one_op("SignalEnergy", {"start_index": 0, "end_index": 257}).check([spectrum], [np.full(514, -(2**15), np.int16)])
    op = one_op("SignalEnergy", {"start_index": 5, "end_index": 241})
    [[ours]], [[theirs]] = op.run([spectrum]), op.run_on_micro([spectrum])
    np.testing.assert_array_equal(ours[5:241], theirs[5:241])


@pytest.mark.parametrize(("start", "end"), [(3, 3), (4, 2), (5, 5)])
def test_an_empty_range_has_no_energy(one_op: Any, start: int, end: int) -> None:
    assert not one_op("SignalEnergy", {"start_index": start, "end_index": end}).run_once(full("int16", 10)).any()


# SignalFftAutoScale --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("samples", "bits"),
    [
        ([0, 0], 0),
        ([1, -1], 14),
        ([5, -130, 7], 7),
        ([16383], 1),
        ([16384], 0),
        ([-32767, 3], 0),
        ([-32768], 0),
        ([-32768, 5], 12),  # tflite-micro forgets a sample whose absolute value overflows
        ([9999, -32768, -5, -3], 0),
        ([-32768, -5, -3, -4], 12),
        ([-32768, -5, 0, -32768, 0, 1], 14),
    ],
)
def test_signals_are_scaled_up_to_their_loudest_sample(one_op: Any, samples: list[int], bits: int) -> None:
    signal = np.array(samples, np.int16)
    scaled, scale_bits = one_op("SignalFftAutoScale", {}).run_once(signal)
    assert scale_bits == bits
    np.testing.assert_array_equal(scaled, signal << np.int16(bits))
    one_op("SignalFftAutoScale", {}).check([signal])


def test_no_signal_is_not_scaled(one_op: Any) -> None:
    scaled, bits = one_op("SignalFftAutoScale", {}).run_once(np.empty(0, np.int16))
    assert (scaled.size, bits) == (0, 0)


# SignalFilterBankSquareRoot ------------------------------------------------------------------------------------


def rounded_root(value: int) -> int:
    root = math.isqrt(value)
    return min(root + (value - root * root > root), 0xFFFF if value < 2**32 else 0xFFFFFFFF)


def test_square_roots_are_rounded_to_nearest(one_op: Any) -> None:
    roots = [1, 2, 0xFFFE, 0xFFFF, 0x10000, 94906265, 94906267, 0xFFFFFFFE, 0xFFFFFFFF, *full("uint32", 500).tolist()]
    near = [r * r + offset for r in roots for offset in (-1, 0, r, r + 1)]
    values = np.concatenate([magnitudes("uint64", 500), np.array([v for v in near if v < 2**64], np.uint64)])
    op = one_op("SignalFilterBankSquareRoot", {})
    for bits in (0, 3, 31):
        feeds = values, np.array(bits, np.int32)
        assert op.run_once(*feeds).tolist() == [rounded_root(value) >> bits for value in values.tolist()]
        op.check(feeds)


@pytest.mark.parametrize("bits", [-1, 32])
def test_a_shift_that_comes_as_data_is_checked_as_data(one_op: Any, bits: int) -> None:
    with pytest.raises(RuntimeError, match=f"shifted right by {bits} bits.*SignalFilterBankSquareRoot"):
        one_op("SignalFilterBankSquareRoot", {}).run_once(np.ones(2, np.uint64), np.array(bits, np.int32))


# SignalFilterBankLog -------------------------------------------------------------------------------------------


def test_logarithms_are_near_the_mathematical_ones(one_op: Any) -> None:
    values = magnitudes("uint32", 300)
    logs = one_op("SignalFilterBankLog", {"input_correction_bits": 0, "output_scale": 1000}).run_once(values)
    np.testing.assert_allclose(logs, 1000 * np.log(np.maximum(values, 1)), rtol=0, atol=8)


@pytest.mark.parametrize("scale", [1, 64, 70000, 2**31 - 1])
@pytest.mark.parametrize("bits", [0, 3, 31])
def test_logarithms_are_tflite_micro_s(one_op: Any, bits: int, scale: int) -> None:
    one_op("SignalFilterBankLog", {"input_correction_bits": bits, "output_scale": scale}).check([magnitudes("uint32", 2000)])


def test_recorded_logarithms(one_op: Any) -> None:
    # What tflite-micro gave for these values; the last but two are limited, and nothing.
    values = np.array([0, 1, 2, 3, 100, 65537, 2**31 + 12345, 2**32 - 1], np.uint32)
    logs = one_op("SignalFilterBankLog", {"input_correction_bits": 0, "output_scale": 1600}).run_once(values)
    assert logs.tolist() == [0, 0, 1109, 1758, 7368, 17745, 32767, 32767]


# SignalPCAN ----------------------------------------------------------------------------------------------------


def pcan(signal: int, noise: int, table: list[int], shift: int) -> int:
    if noise <= 2:
        gain = table[noise]
    else:
        bits = noise.bit_length()
        at = 4 * bits - 6
        fraction = ((noise << 11) >> bits) & 0x3FF
        gain = (((table[at + 2] * fraction >> 5) + (table[at + 1] << 5)) * fraction + (1 << 14) >> 15) + table[at]
    snr = (signal * gain >> shift) & 0xFFFFFFFF
    return (snr * snr & 0xFFFFFFFF) >> 20 if snr < 8192 else (snr >> 6) - 64


@pytest.mark.parametrize("shift", [0, 6, 20, 63])
def test_gains_are_polynomials_of_what_follows_the_leading_bit(one_op: Any, shift: int) -> None:
    table = np.sort(RANDOM.integers(0, 8000, 125)).astype(np.int16)[::-1].copy()
    noise = magnitudes("uint32", 400)
    signal = RANDOM.permutation(magnitudes("uint32", 400))
    op = one_op("SignalPCAN", {"snr_shift": shift}, [table])
    wanted = [pcan(s, n, table.tolist(), shift) for s, n in zip(signal.tolist(), noise.tolist())]
    assert op.run_once(signal, noise).tolist() == wanted
    op.check([signal, noise])


def test_gains_of_senseless_tables_wrap_around_as_in_tflite_micro(one_op: Any) -> None:
    table, signal = full("int16", 125), magnitudes("uint32", 800)
    one_op("SignalPCAN", {"snr_shift": 6}).check([signal, RANDOM.permutation(signal), table])


# SignalFilterBank ----------------------------------------------------------------------------------------------


def accumulate(energies: Any, weights: Any, unweights: Any, starts: Any, weight_starts: Any, widths: Any) -> list[int]:
    sums, carried = [], 0
    for start, weight_start, width in zip(starts.tolist(), weight_starts.tolist(), widths.tolist()):
        total, carried, before = carried, 0, 0
        for j in range(width):
            total += int(weights[weight_start + j]) * int(energies[start + j])
            before += int(unweights[weight_start + j]) * int(energies[start + j])
        sums.append(total % 2**64)
        carried = before
    return sums[1:]


@pytest.mark.parametrize("senseless", [False, True], ids=["weights", "negative weights"])
@pytest.mark.parametrize("constant", [True, False], ids=["constant", "fed"])
def test_each_frequency_counts_for_two_channels(one_op: Any, constant: bool, senseless: bool) -> None:
    widths = np.array([3, 1, 0, 7, -2, 12, 5], np.int16)
    weight_starts = np.array([0, 3, 77, 4, 0, 11, 23], np.int16)
    starts = np.array([2, 5, -9, 6, 0, 13, 25], np.int16)
    weights = full("int16", 28) if senseless else RANDOM.integers(0, 4097, 28).astype(np.int16)
    unweights = full("int16", 28) if senseless else (4096 - weights).astype(np.int16)
    layout = [weights, unweights, starts, weight_starts, widths]
    energies = full("uint32", 30)
    op = one_op("SignalFilterBank", {"num_channels": 6}, layout if constant else [])
    feeds = [energies] if constant else [energies, *layout]
    assert op.run_once(*feeds).tolist() == accumulate(energies, *layout)
    op.check(feeds, feeds)


def test_there_may_be_no_channels(one_op: Any) -> None:
    layout = [np.ones(n, np.int16) for n in (2, 2, 1, 1, 1)]
    assert one_op("SignalFilterBank", {"num_channels": 0}, layout).run_once(full("uint32", 4)).size == 0


@pytest.mark.parametrize(
    ("which", "value", "reason"),
    [
        (2, -1, r"band 1 starts at -1 \(tensor 3.*and is 3 wide, which is not within tensor 0"),
        (2, 4, r"band 1 starts at 4.*not within tensor 0"),
        (3, -1, r"band 1 starts at -1 \(tensor 4.*not within tensor 1"),
        (3, 5, r"band 1 starts at 5.*not within tensor 1"),
        (4, 32767, "band 1.*32767 wide"),
    ],
)
@pytest.mark.parametrize("constant", [True, False], ids=["constant", "fed"])
def test_bands_lie_within_the_spectrum_and_the_weights(one_op: Any, constant: bool, which: int, value: int, reason: str) -> None:
    layout = [np.ones(n, np.int16) for n in (6, 6, 2, 2, 2)]
    layout[4][1] = 3
    layout[which][1] = value
    op = one_op("SignalFilterBank", {"num_channels": 1}, layout if constant else [])
    with pytest.raises(RuntimeError, match=f"{reason}.*SignalFilterBank"):
        op.run_once(np.ones(6, np.uint32), *([] if constant else layout))


def test_bands_cannot_ask_for_any_amount_of_memory(one_op: Any) -> None:
    many = 30000
    layout = [np.zeros(n, np.int16) for n in (2, 2, many, many, many)]
    layout[4][:] = 32767
    with pytest.raises(RuntimeError, match="sum up to 983010000"):
        one_op("SignalFilterBank", {"num_channels": many - 1}, layout).run_once(np.zeros(32767, np.uint32))
