"""PosenetDecoderOp: persons are found, and every number is what libcoral defines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from plugins.coral_ops.tests.definition import masks_of, poses_of
from plugins.coral_ops.tests.persons import decoder, maps_of, nonsense, person, quantized

from oplet import Limits
from oplet.errors import DeadlineError, LimitError
from oplet_coral_ops.poses import ScoreQueue
from oplet_testing import OpContract

PERSONS = [person(40, 60, 40), person(60, 200, 50), person(30, 330, 35)]


def finite(maps: list[Any]) -> list[Any]:
    return [np.nan_to_num(each, nan=3, posinf=90, neginf=-90) for each in maps]


@pytest.mark.parametrize("few", [0, 1, 3])
def test_persons_are_found_where_they_are(few: int, run: Any) -> None:
    maps = maps_of(PERSONS[: few or 1], 23, 31)
    if not few:
        maps[0][...] = -9
    points, keypoint_scores, scores, count = run(decoder(maps), *maps)
    assert count == [few]
    for place, found in enumerate(points[0, :few]):
        assert min(np.abs(found - each).max() for each in PERSONS) < 1, place
    for output in (points, keypoint_scores, scores):
        assert not output[0, few:].any()
        assert output[0, :few].all()


@pytest.mark.parametrize("noise", [0.5, 4])
@pytest.mark.parametrize("threshold", [0.5, 0.05])
def test_poses_are_what_libcoral_defines(noise: float, threshold: float, run: Any) -> None:
    maps = maps_of(PERSONS, 13, 25, noise=noise)
    check(maps, run(decoder(maps, score_threshold=threshold), *maps), threshold)


def test_poses_of_nonsense_are_what_libcoral_defines(run: Any) -> None:
    maps = finite(nonsense(7, 9))
    maps[0] += (
        np.random.default_rng(5).permutation(maps[0].size).reshape(maps[0].shape).astype(np.float32) / 4096
    )  # none are equal
    check(maps, run(decoder(maps, score_threshold=0.05), *maps), 0.05)


def check(maps: list[Any], ours: list[Any], threshold: float) -> None:
    wanted = poses_of(maps, 10, threshold, 16, 20.0)
    assert ours[3] == [len(wanted)]
    assert len(wanted) > 1
    for place, (points, keypoint_scores, score) in enumerate(wanted):
        np.testing.assert_array_equal(ours[0][0, place], points)
        np.testing.assert_array_equal(ours[1][0, place], keypoint_scores)
        assert ours[2][0, place] == score


def test_quantized_maps_are_what_they_stand_for(run: Any) -> None:
    maps = maps_of(PERSONS, 23, 31, far=True, noise=0.5)
    packed, scales = quantized(maps)
    floats = [(each.astype(np.float32) - np.float32(zero)) * np.float32(scale) for each, (scale, zero) in zip(packed, scales)]
    ours, wanted = run(decoder(packed, scales), *packed), run(decoder(floats), *floats)
    for our, their in zip(ours, wanted):
        np.testing.assert_allclose(our, their, rtol=1e-3)


@pytest.mark.parametrize("size", [(9, 9), (7, 12)])
def test_masks_are_what_libcoral_defines(size: tuple[int, int], run: Any) -> None:
    """Of square maps; of others libcoral mixes up height and width."""
    maps = maps_of(PERSONS[:2], *size, far=True, noise=3)
    points, _, _, count, masks = run(decoder(maps, score_threshold=0.05), *maps)
    assert masks.shape == (1, 10, *size)
    most = int(count[0])
    assert most == 2
    np.testing.assert_array_equal(masks[0, :most], masks_of(maps[3], list(points[0, :most]), 16))
    assert not masks[0, most:].any()


def test_without_poses_there_are_no_masks(run: Any) -> None:
    maps = maps_of(PERSONS[:1], 33, 33, far=True)
    maps[0][...] = -9
    *_, count, masks = run(decoder(maps), *maps)
    assert (count, masks.shape, masks.any()) == ([0], (1, 10, 33, 33), False)


@pytest.mark.parametrize("threshold", [-1.0, 0.0, 1.0, 1e30])
def test_maps_of_any_values_are_decoded(threshold: float, run: Any) -> None:
    maps = nonsense(9, 9, far=True)
    maps[0].flat[::7] = np.nan
    points, keypoint_scores, _, count, _ = run(decoder(maps, score_threshold=threshold), *maps)
    assert 0 <= count[0] <= 10
    assert np.isfinite(points).all()
    assert ((points >= 0) & (points <= 8 * 16)).all()
    assert keypoint_scores.shape == (1, 10, 17)


def test_the_queue_is_that_of_libstdcxx() -> None:
    # What std::priority_queue of g++ gave for these pushes, by number.
    queue = ScoreQueue[int]()
    scores = [3, 1, 3, 2, 3, 1, 2, 2, 3, 1, 1, 3]
    for number, score in enumerate(scores):
        queue.push(score, number)
    found = [queue.pop() for _ in range(len(scores))]
    assert [score for score, _ in found] == sorted(scores, reverse=True)
    assert [number for _, number in found] == [0, 2, 11, 4, 8, 6, 3, 7, 10, 5, 9, 1]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"stride": 0}, "stride"),
        ({"stride": -16}, "stride"),
        ({"max_detections": -1}, "max_detections"),
        ({"max_detections": None}, "max_detections"),
        ({"nms_radius": "wide"}, "nms_radius"),
        ({"score_threshold": float("nan")}, "score_threshold"),
    ],
)
def test_options_that_no_decoder_has_are_refused(options: dict[str, Any], reason: str, run: Any) -> None:
    maps = maps_of(PERSONS[:1], 3, 3)
    with pytest.raises(RuntimeError, match=f"{reason}.*PosenetDecoderOp"):
        run(decoder(maps, **options), *maps)


def test_maps_that_do_not_fit_each_other_are_refused(run: Any) -> None:
    maps = maps_of(PERSONS[:1], 3, 4)
    for number in range(3):
        wrong = [each[:, :2] if place == number else each for place, each in enumerate(maps)]
        with pytest.raises(RuntimeError, match="height and width"):
            run(decoder(wrong), *wrong)
        thin = [each[..., :5] if place == number else each for place, each in enumerate(maps)]
        with pytest.raises(RuntimeError, match="must have the shape"):
            run(decoder(thin), *thin)


def test_outputs_of_any_size_are_charged(run: Any) -> None:
    maps = maps_of(PERSONS[:1], 3, 3)
    with pytest.raises(LimitError):
        run(decoder(maps, max_detections=2**31 - 1), *maps)


def test_maps_full_of_candidates_end_at_the_deadline_and_are_charged(run: Any) -> None:
    maps = [np.zeros((1, 96, 96, channels), np.float32) for channels in (17, 34, 64)]
    with pytest.raises(DeadlineError):
        run(decoder(maps, max_detections=100_000, nms_radius=-1.0, score_threshold=0.1), *maps, limits=Limits(max_seconds=0.2))
    with pytest.raises(LimitError):
        run(decoder(maps, score_threshold=0.1), *maps, limits=Limits(max_arena_bytes=20 << 20))


def emptied(maps: list[Any], axis: int) -> list[Any]:
    return [np.delete(each, range(each.shape[axis]), axis) for each in maps]


class TestContract(OpContract):
    model = decoder(maps_of(PERSONS[:2], 5, 7))
    inputs = maps_of(PERSONS[:2], 5, 7)
    resized = maps_of(PERSONS[:2], 6, 4)
    empty = emptied(inputs, 1)


class TestContractOfMasks(OpContract):
    model = decoder(*quantized(maps_of(PERSONS[:2], 5, 5, far=True)))
    inputs = quantized(maps_of(PERSONS[:2], 5, 5, far=True))[0]
    resized = quantized(maps_of(PERSONS[:2], 4, 6, far=True))[0]
    empty = emptied(inputs, 2)
