"""The ops that remember: what they give invoke by invoke, starting afresh, and tflite-micro's own numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

RANDOM = np.random.default_rng(11)


def steps(dtype: str, shape: tuple[int, ...], count: int) -> list[list[Any]]:
    if dtype == "float32":
        return [[RANDOM.normal(0, 9, shape).astype(np.float32)] for _ in range(count)]
    limits = np.iinfo(dtype)
    return [[RANDOM.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)] for _ in range(count)]


def int16(*rows: Any) -> list[list[Any]]:
    return [[np.array(row, np.int16)] for row in rows]


def only(outputs: list[list[Any]]) -> list[Any]:
    return [output[0].tolist() for output in outputs]


#: A node of each op, the type and shape of its input.
STREAMS = {
    "delay": ("SignalDelay", {"delay_length": 7}, "int16", (2, 5)),
    "framer": ("SignalFramer", {"frame_size": 5, "frame_step": 2, "prefill": True}, "int16", (2, 4)),
    "framer to fill": ("SignalFramer", {"frame_size": 5, "frame_step": 2, "prefill": False}, "int16", (2, 4)),
    "stacker": ("SignalStacker", {"num_channels": 3, "stacker_left_context": 1, "stacker_right_context": 0, "stacker_step": 1}, "int16", (3,)),
    "overlap-add": ("SignalOverlapAdd", {"T": 7, "frame_step": 3}, "int16", (2, 2, 7)),
    "overlap-add of floats": ("SignalOverlapAdd", {"T": 0, "frame_step": 3}, "float32", (2, 2, 7)),
    "spectral subtraction": (
        "SignalFilterBankSpectralSubtraction",
        {
            "num_channels": 6, "smoothing": 409, "one_minus_smoothing": 15975, "alternate_smoothing": 983, "alternate_one_minus_smoothing": 15401,
            "smoothing_bits": 10, "min_signal_remaining": 819, "clamping": False, "spectral_subtraction_bits": 14,
        },
        "uint32", (6,),
    ),
}  # fmt: skip

stream = pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)


@stream
def test_resetting_starts_afresh_as_in_tflite_micro(one_op: Any, stream: Any) -> None:
    op, options, dtype, shape = stream
    feeds = steps(dtype, shape, 8)
    node = one_op(op, options)
    interpreter = node.interpreter(feeds[0])
    before = node.invoke(interpreter, feeds[:4])
    interpreter.reset_all_variables()
    ours = before + node.invoke(interpreter, feeds[4:])
    fresh = node.run(*feeds[:4]) + node.run(*feeds[4:])
    theirs = node.run_on_micro(*feeds, reset_after=3)
    for number, outputs in enumerate(ours):
        complete = len(outputs) == 1 or outputs[1].dtype != bool or outputs[1]
        for index, output in enumerate(outputs):
            np.testing.assert_array_equal(output, fresh[number][index])
            if complete or output.dtype == bool:  # tflite-micro leaves what it has no samples for as the memory is
                np.testing.assert_array_equal(output, theirs[number][index])


@stream
def test_two_interpreters_remember_by_themselves(one_op: Any, stream: Any) -> None:
    op, options, dtype, shape = stream
    feeds = steps(dtype, shape, 5)
    node = one_op(op, options)
    one, other = node.interpreter(feeds[0]), node.interpreter(feeds[0])
    for number, feed in enumerate(feeds):
        [ours] = node.invoke(one, [feed])
        node.invoke(other, [feeds[-1 - number]])
        for mine, wanted in zip(ours, node.run(*feeds[: number + 1])[-1]):
            np.testing.assert_array_equal(mine, wanted)


@pytest.mark.parametrize("name", ["delay", "framer", "overlap-add"])
def test_a_signal_of_another_shape_starts_afresh(one_op: Any, name: str) -> None:
    op, options, dtype, shape = STREAMS[name]
    node = one_op(op, options)
    small, large = steps(dtype, shape, 3), steps(dtype, (3, *shape[1:]), 3)
    interpreter = node.interpreter(small[0])
    node.invoke(interpreter, small)
    interpreter.resize_tensor_input(0, [3, *shape[1:]])
    interpreter.allocate_tensors()
    for ours, wanted in zip(node.invoke(interpreter, large), node.run(*large)):
        np.testing.assert_array_equal(ours[0], wanted[0])


# SignalDelay ---------------------------------------------------------------------------------------------------


def test_what_goes_in_comes_out_later(one_op: Any) -> None:
    signal = int16([1, 2, 3, 4, 5, 6, 7, 8, 9, 0], [0] * 10)
    late = one_op("SignalDelay", {"delay_length": 3}).run(*signal)
    assert only(late) == [[0, 0, 0, 1, 2, 3, 4, 5, 6, 7], [8, 9, 0, 0, 0, 0, 0, 0, 0, 0]]


@pytest.mark.parametrize("delay", [0, 1, 4, 5, 13])
def test_delays_of_any_length_are_tflite_micro_s(one_op: Any, delay: int) -> None:
    one_op("SignalDelay", {"delay_length": delay}).check(*steps("int16", (2, 2, 5), 5))


# SignalFramer --------------------------------------------------------------------------------------------------


def test_frames_overlap(one_op: Any) -> None:
    signal = int16([1, 2], [3, 4], [5, 6], [7, 8])
    frames = one_op("SignalFramer", {"frame_size": 3, "frame_step": 2, "prefill": False}).run(*signal)
    assert only(frames) == [[[0, 0, 0]], [[1, 2, 3]], [[3, 4, 5]], [[5, 6, 7]]]
    assert [bool(valid) for _, valid in frames] == [False, True, True, True]


def test_zeros_before_the_signal_make_the_first_frame_valid(one_op: Any) -> None:
    signal = int16([1, 2], [3, 4], [5, 6])
    frames = one_op("SignalFramer", {"frame_size": 3, "frame_step": 2, "prefill": True}).run(*signal)
    assert only(frames) == [[[0, 1, 2]], [[2, 3, 4]], [[4, 5, 6]]]
    assert all(valid for _, valid in frames)


@pytest.mark.parametrize("prefill", [False, True])
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize(("size", "step"), [(1, 1), (5, 1), (5, 2), (6, 3), (7, 3), (4, 4), (400, 160)])
def test_frames_are_tflite_micro_s(one_op: Any, size: int, step: int, count: int, prefill: bool) -> None:
    op = one_op("SignalFramer", {"frame_size": size, "frame_step": step, "prefill": prefill})
    feeds = steps("int16", (2, count * step), 9)
    for (frames, valid), (their_frames, their_valid) in zip(op.run(*feeds), op.run_on_micro(*feeds)):
        assert valid == their_valid
        if valid:
            np.testing.assert_array_equal(frames, their_frames)


def test_frames_may_leave_samples_out(one_op: Any) -> None:
    frames = one_op("SignalFramer", {"frame_size": 2, "frame_step": 3, "prefill": False}).run(*int16([1, 2, 3], [4, 5, 6]))
    assert only(frames) == [[[1, 2]], [[4, 5]]]


# SignalStacker -------------------------------------------------------------------------------------------------


def test_stacks_have_context_on_both_sides(one_op: Any) -> None:
    options = {"num_channels": 1, "stacker_left_context": 0, "stacker_right_context": 1, "stacker_step": 2}
    stacks = one_op("SignalStacker", options).run(*int16(*([n] for n in range(1, 7))))
    assert only(stacks) == [[0, 0], [1, 2], [0, 0], [3, 4], [0, 0], [5, 6]]
    assert [bool(valid) for _, valid in stacks] == [False, True] * 3


def test_left_of_the_first_frame_there_are_copies_of_it(one_op: Any) -> None:
    options = {"num_channels": 2, "stacker_left_context": 2, "stacker_right_context": 0, "stacker_step": 1}
    stacks = one_op("SignalStacker", options).run(*int16([1, 2], [3, 4], [5, 6]))
    assert only(stacks) == [[1, 2, 1, 2, 1, 2], [1, 2, 1, 2, 3, 4], [1, 2, 3, 4, 5, 6]]


@pytest.mark.parametrize(("left", "right", "step"), [(0, 0, 1), (1, 0, 1), (1, 0, 2), (3, 2, 1), (3, 2, 4), (0, 2, 3), (2, 1, 4)])
def test_stacks_are_tflite_micro_s(one_op: Any, left: int, right: int, step: int) -> None:
    options = {"num_channels": 3, "stacker_left_context": left, "stacker_right_context": right, "stacker_step": step}
    feeds = steps("int16", (3,), 12)
    op = one_op("SignalStacker", options)
    for (stack, valid), (their_stack, their_valid) in zip(op.run(*feeds), op.run_on_micro(*feeds)):
        assert valid == their_valid
        if valid:
            np.testing.assert_array_equal(stack, their_stack)


# SignalOverlapAdd ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("code", "dtype"), [(7, np.int16), (0, np.float32)])
def test_frames_add_up_where_they_overlap(one_op: Any, code: int, dtype: Any) -> None:
    frames = [[[1, 2, 3], [4, 5, 6]], [[7, 8, 9], [0, 1, 2]]]
    signal = one_op("SignalOverlapAdd", {"T": code, "frame_step": 2}).run(*([np.array(pair, dtype)] for pair in frames))
    assert only(signal) == [[1, 2, 7, 5], [13, 8, 9, 1]]


def test_sums_are_limited_one_after_the_other(one_op: Any) -> None:
    # Limited at the end only, 30000 + 30000 - 30000 would be 30000.
    frames = int16([[30000] * 3, [30000] * 3, [-30000] * 3])
    signal = one_op("SignalOverlapAdd", {"T": 7, "frame_step": 1}).run(*frames)
    assert only(signal) == [[30000, 32767, 2767]]


@pytest.mark.parametrize("step", [1, 3, 7])
@pytest.mark.parametrize(("code", "dtype"), [(7, "int16"), (0, "float32")])
def test_overlapping_sums_are_tflite_micro_s(one_op: Any, code: int, dtype: str, step: int) -> None:
    one_op("SignalOverlapAdd", {"T": code, "frame_step": step}).check(*steps(dtype, (2, 3, 7), 4))


# SignalFilterBankSpectralSubtraction ---------------------------------------------------------------------------

SUBTRACTION = STREAMS["spectral subtraction"][1]


def test_steady_signals_become_noise(one_op: Any) -> None:
    options = dict(SUBTRACTION, num_channels=2)
    steady = [[np.array([1000, 1000], np.uint32)]] * 400
    outputs = one_op("SignalFilterBankSpectralSubtraction", options).run(*steady)
    # The first estimate is 1000 << 10, times 409 / 2^14 and in the odd channel 983 / 2^14.
    assert outputs[0][1].tolist() == [(1000 << 10) * 409 >> 14, (1000 << 10) * 983 >> 14]
    assert outputs[0][0].tolist() == [975, 940]
    assert outputs[-1][0].tolist() == [1000 * 819 >> 14] * 2  # what always remains


@pytest.mark.parametrize("clamping", [False, True])
@pytest.mark.parametrize("bits", [(10, 14), (0, 0), (31, 63), (7, 20)])
def test_noise_is_estimated_as_in_tflite_micro(one_op: Any, bits: tuple[int, int], clamping: bool) -> None:
    options = dict(SUBTRACTION, clamping=clamping, smoothing_bits=bits[0], spectral_subtraction_bits=bits[1])
    feeds = [[feed >> RANDOM.integers(0, 32, 6).astype(np.uint32)] for [feed] in steps("uint32", (6,), 8)]
    one_op("SignalFilterBankSpectralSubtraction", options).check(*feeds)
    huge = {key: 2**31 - 1 for key in options if "smoothing" in key and key != "smoothing_bits"}
    one_op("SignalFilterBankSpectralSubtraction", {**options, **huge}).check(*feeds)
