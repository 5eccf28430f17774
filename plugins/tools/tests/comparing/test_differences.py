"""What counts as the same answer: tensors by their own scale, integers by steps, and what must be equal."""

from __future__ import annotations

import numpy as np
import pytest

from oplet.errors import TensorError
from oplet_tools.tuning.differences import difference, scale_of
from oplet_tools.tuning.tolerances import PRESETS, ModelKind, elementwise, tolerance_for, tolerance_named

NAN, INF = float("nan"), float("inf")
FLOAT32, STRICT, INT8 = PRESETS["float32"], PRESETS["strict"], PRESETS["int8"]


def real(*values):
    return np.array(values, np.float32)


@pytest.mark.parametrize(
    ("got", "wanted", "passed"),
    [
        (real(100, 1e-6), real(100, 2e-6), True),  # near zero beside a hundred
        (real(1e-6, 1e-9), real(1e-6, 2e-9), False),  # a tensor of small values has a small scale
        (real(0, 0), real(0, 0), True),
        (real(1e-9, 0), real(0, 0), False),  # zeros are zeros
        (real(0, 0), np.array([1e-40, 1e-42], np.float32), True),  # denormals may be flushed
        (real(NAN, 1), real(NAN, 1), True),
        (real(NAN, 1), real(1, 1), False),
        (real(1, 1), real(NAN, 1), False),
        (real(INF, 1), real(INF, 1), True),
        (real(INF, 1), real(-INF, 1), False),
        (real(3.4e38, 1), real(INF, 1), False),
        (real(-1e9, 1, 2), real(-1e9, 1.1, 2), False),  # a mask's -1e9 hides nothing
        (real(-1.0001e9, 1, 2), real(-1e9, 1, 2), True),  # and is measured by itself
        (real(), real(), True),
    ],
)
def test_real_numbers_are_judged_by_the_scale_of_their_tensor(got, wanted, passed):
    assert difference(got, wanted, FLOAT32).passed is passed


def test_strict_is_bit_for_bit_but_for_nan_and_the_sign_of_zero():
    assert difference(real(NAN, 0), real(NAN, -0.0), STRICT).passed
    assert not difference(np.nextafter(real(1), real(2)), real(1), STRICT).passed
    assert not difference(np.array([1e-45], np.float32), real(0), STRICT).passed


def test_the_worst_value_is_named_with_its_place_both_values_and_its_error():
    found = difference(real(1, 2, 2.5), real(1, 2, 2), FLOAT32)
    assert (found.worst.index, found.worst.got, found.worst.wanted, found.worst.units) == ((2,), 2.5, 2.0, 0.25)
    steps = difference(np.int8([[1, 9]]), np.int8([[1, 2]]), INT8, (0.5, -100))
    assert (steps.worst.index, steps.worst.got, steps.worst.wanted, steps.worst.units) == ((0, 1), 9, 2, 7.0)
    assert (steps.allowed, steps.passed) == (2.0, False)


def test_the_worst_of_several_runs_is_kept_with_the_number_of_its_run():
    both = difference(real(1, 2), real(1, 2), FLOAT32, run=0) + difference(real(1, 3), real(1, 2), FLOAT32, run=1)
    assert (both.worst.run, both.values, both.differing, both.passed) == (1, 4, 1, False)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint64])
def test_steps_of_integers_are_exact_and_do_not_wrap_around(dtype):
    limits = np.iinfo(dtype)
    found = difference(np.array([limits.max, 5], dtype), np.array([limits.min, 5], dtype), STRICT)
    assert (found.max_abs, found.differing, found.passed) == (int(limits.max) - int(limits.min), 1, False)


def test_whole_numbers_text_and_truth_must_be_equal_whatever_the_tolerance():
    for tolerance in PRESETS.values():
        assert not difference(np.int32([3]), np.int32([4]), tolerance).passed
        assert not difference(np.array([True]), np.array([False]), tolerance).passed
        assert not difference(np.array([b"a"], object), np.array([b"b"], object), tolerance).passed
        assert difference(np.array([b"a"], object), np.array([b"a"], object), tolerance).passed


def test_other_types_and_shapes_are_said():
    half = np.array([1, 2], np.float16)
    assert difference(half, half.astype(np.float32), FLOAT32).why == "the type is float16, not float32"
    assert difference(half, half[:1], FLOAT32).why == "the shape is [2], not [1]"
    assert difference(half * 1j, half * 1j, STRICT).passed
    assert difference(np.float32(1), np.float32(1), STRICT).values == 1


@pytest.mark.parametrize("seed", range(3))
def test_one_percent_of_all_values_is_seen_where_single_values_may_be_off_by_more(seed):
    random = np.random.default_rng(seed)
    real_values = random.normal(0, 40, 2000)
    wanted = np.clip(np.rint(real_values), -128, 127).astype(np.int8)
    louder = np.clip(np.rint(real_values * 1.01), -128, 127).astype(np.int8)
    noisy = np.clip(wanted + random.choice([-1, 0, 0, 0, 1], 2000), -128, 127).astype(np.int8)
    assert difference(louder, wanted, INT8, (0.1, 0)).passed, "no value is off by more than two steps"
    assert not difference(louder, wanted, INT8, (0.1, 0)).judged_as_whole(INT8).passed
    assert difference(noisy, wanted, INT8, (0.1, 0)).judged_as_whole(INT8).passed
    hybrid = real_values + random.uniform(-1, 1, 2000)
    assert difference(hybrid, real_values, INT8).judged_as_whole(INT8).passed
    assert "larger by" in difference(hybrid * 1.01, real_values, INT8).judged_as_whole(INT8).why


def test_what_is_no_number_counts_for_no_mean():
    some = difference(real(NAN, 1, 3), real(NAN, 1, 2), FLOAT32)
    assert (some.values, some.nonfinite, some.mean_abs) == (3, 1, 0.5)
    for both in (
        some + difference(real(1, 2, 3, 4), real(1, 2, 3, 4), FLOAT32),
        difference(real(1, 2, 3, 4), real(1, 2, 3, 4), FLOAT32) + some,
    ):
        assert both.mean_abs == pytest.approx(1 / 6)


def test_tolerances_by_name_by_number_and_by_type():
    assert tolerance_named("int8") is INT8
    assert not difference(real(1.0, 0.9), real(1, 1), tolerance_named("0.05")).passed
    assert difference(real(1.0, 0.96), real(1, 1), tolerance_named("0.05")).passed
    assert difference(np.int8([100, 96]), np.int8([100, 100]), tolerance_named("0.05"), (1.0, 0)).passed
    assert not difference(np.int8([100, 94]), np.int8([100, 100]), tolerance_named("0.05"), (1.0, 0)).passed
    for text in ("much", "-1", "nan", "inf", ""):
        with pytest.raises(TensorError, match="neither one of strict"):
            tolerance_named(text)
    assert tolerance_for(np.dtype(np.float32), False, ModelKind.FLOAT32) is FLOAT32
    assert tolerance_for(np.dtype(np.float32), False, ModelKind.FLOAT16) is PRESETS["float16"]
    assert tolerance_for(np.dtype(np.float32), False, ModelKind.HYBRID) is INT8
    assert tolerance_for(np.dtype(np.int8), True, ModelKind.FLOAT32) is INT8
    assert tolerance_for(np.dtype(np.int32), False, ModelKind.INTEGER) is STRICT


def test_elementwise_tolerances_count_integers_in_steps():
    assert difference(np.int32([3]), np.int32([5]), elementwise(None, 2)).passed
    assert not difference(np.int32([3]), np.int32([6]), elementwise(None, 2)).passed
    assert difference(real(1.0, 0.001), real(1.0, 0.002), elementwise(0.5, None)).passed


def test_the_scale_leaves_out_what_is_huge_beside_the_others():
    assert scale_of(np.array([-1e9, 3, -4])) == 4
    assert scale_of(np.array([1.0, 1e-9])) == 1
    assert scale_of(np.array([2e9, 1e9])) == 2e9
    assert scale_of(np.array([NAN, INF, 2])) == 2
    assert scale_of(np.array([])) == 0
