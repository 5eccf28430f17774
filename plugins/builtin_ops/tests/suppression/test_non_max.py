"""NON_MAX_SUPPRESSION_V4 and _V5, and the queue on which their choice among equals depends."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from oplet.errors import OpletError
from oplet_builtin_ops.suppression import non_max as kernel
from oplet_builtin_ops.suppression.priority_queue import PriorityQueue
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec


def suppression(
    boxes: Any, scores: Any, most: int, overlap: float, threshold: float, sigma: float | None = None, fixed: bool = True
) -> Any:
    count = np.array(most, np.int32)
    thresholds = [np.array(v, np.float32) for v in (overlap, threshold, sigma) if v is not None]
    outputs = [Spec("int32", (1,)), *([] if sigma is None else [Spec("float32", (1,))]), Spec("int32", ())]
    inputs = [Spec("float32", boxes.shape), Spec("float32", scores.shape), count if fixed else Spec("int32", ()), *thresholds]
    model = one_op_model(f"NON_MAX_SUPPRESSION_V{4 if sigma is None else 5}", inputs, outputs)
    return model, [boxes, scores, *([] if fixed else [count])]


CORNERS = np.array(
    [[0, 0, 1, 1], [0, 0.1, 1, 1.1], [1, -0.1, 0, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1], [0, 100, 1, 101]], np.float32
)
SCORES = np.array([0.9, 0.75, 0.6, 0.95, 0.5, 0.3], np.float32)


def test_the_best_box_of_each_heap_is_chosen() -> None:
    model, feeds = suppression(CORNERS, SCORES, 5, 0.5, 0.0)
    chosen, number = run_op(model, *feeds)
    assert number == 3
    assert chosen.tolist() == [3, 0, 5, 0, 0]


def test_a_score_must_be_above_the_threshold() -> None:
    model, feeds = suppression(CORNERS, SCORES, 5, 0.5, 0.9)
    assert run_op(model, *feeds)[1] == 1


def test_overlap_lowers_scores_softly() -> None:
    model, feeds = suppression(CORNERS, SCORES, 6, 1.0, 0.0, 0.5)
    chosen, scores, number = run_op(model, *feeds)
    assert number == 6
    assert chosen[:2].tolist() == [3, 0]
    assert sorted(chosen.tolist()) == [0, 1, 2, 3, 4, 5]
    assert (scores[2:] <= SCORES[chosen[2:]]).all()


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("levels", [3, 1000])
@pytest.mark.parametrize("overlap", [0.0, 0.3, 1.0, 1.5])
@pytest.mark.parametrize("sigma", [None, 0.0, 0.4])
def test_choices_equal_litert_s(
    sigma: float | None, overlap: float, levels: int, fixed: bool, litert: Callable[..., list[Any]]
) -> None:
    rng = np.random.default_rng(levels)
    boxes = np.round(rng.random((60, 4)) * 8).astype(np.float32)  # some without area, some equal
    scores = (rng.integers(0, levels, 60) / np.float32(levels)).astype(np.float32)
    model, feeds = suppression(boxes, scores, 40, overlap, 0.1, sigma, fixed)
    for got, wanted in zip(run_op(model, *feeds), litert(model, *feeds), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6)


@pytest.mark.parametrize(
    ("most", "sigma", "boxes", "reason"),
    [(-1, None, CORNERS, "is -1"), (2, -0.5, CORNERS, "sigma .* is -0.5"), (2, None, CORNERS[:5], "vector of 5 scores")],
)
def test_what_cannot_be_is_refused(most: int, sigma: float | None, boxes: Any, reason: str) -> None:
    model, feeds = suppression(boxes, SCORES, most, 0.5, 0.0, sigma)
    with pytest.raises(OpletError, match=reason):
        run_op(model, *feeds)


@pytest.mark.parametrize("sigma", [None, 0.0, 0.4])
@pytest.mark.parametrize("levels", [1, 30, 10**6])
def test_more_candidates_are_looked_at_until_enough_are_chosen(
    sigma: float | None, levels: int, litert: Callable[..., list[Any]]
) -> None:
    rng = np.random.default_rng(levels)
    corners = rng.random((3000, 2)) * 3
    boxes = np.concatenate([corners, corners + 0.7], axis=1).astype(np.float32)
    scores = (rng.integers(1, levels + 1, 3000) / np.float32(levels)).astype(np.float32)
    model, feeds = suppression(boxes, scores, 70, 0.6, 0.1, sigma)
    for got, wanted in zip(run_op(model, *feeds), litert(model, *feeds), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6)


def queue_of(priorities: Iterable[int], floor: int = 0) -> PriorityQueue[tuple[int, int]]:
    queue: PriorityQueue[tuple[int, int]] = PriorityQueue()
    for number, priority in enumerate(priorities):
        if priority >= floor:
            queue.append((priority, number))
        else:
            queue.count += 1
    return queue


def drain(queue: PriorityQueue[tuple[int, int]]) -> list[tuple[int, int]]:
    drained = []
    while queue:
        drained.append(queue.pop())
    return drained


def test_the_queue_gives_out_the_highest_first() -> None:
    priorities = np.random.default_rng(0).integers(0, 9, 200).tolist()
    drained = drain(queue_of(priorities))
    assert [priority for priority, _ in drained] == sorted(priorities, reverse=True)
    assert sorted(number for _, number in drained) == list(range(200))


def test_the_queue_gives_out_equals_as_the_c_library_does() -> None:
    # What std::priority_queue of libstdc++ (GCC 12) printed for these entries.
    queue = queue_of(number * 7 % 3 for number in range(12))
    assert [number for _, number in drain(queue)] == [2, 5, 11, 8, 1, 7, 10, 4, 6, 0, 9, 3]


@pytest.mark.parametrize("floor", range(1, 9))
def test_entries_below_the_floor_change_nothing_for_the_others(floor: int) -> None:
    priorities = np.random.default_rng(floor).integers(0, 9, 300).tolist()
    whole = [entry for entry in drain(queue_of(priorities)) if entry[0] >= floor]
    assert drain(queue_of(priorities, floor)) == whole


@pytest.mark.parametrize("overlap", [-0.5, 0.0, 0.2, 0.7, 1.0, 1.5])
@pytest.mark.parametrize(("most", "flat"), [(5, 0), (90, 0), (5000, 0), (90, 400), (5000, 1)])
def test_blocks_of_boxes_are_chosen_as_the_queue_would(overlap: float, most: int, flat: int) -> None:
    random = np.random.default_rng(most + flat)
    centres, sizes = random.uniform(0, 1, (900, 2)), random.uniform(-0.2, 0.2, (900, 2))
    sizes[:flat, 1] = 0
    corners = np.concatenate([centres - sizes, centres + sizes], axis=1).astype(np.float32)
    scores = random.permutation(900).astype(np.float32)
    leaders, limit = kernel.Leaders(corners, np.arange(900), scores, 900), min(most, 900)
    with np.errstate(invalid="ignore"):
        found, expected = (choose(leaders, limit, overlap) for choose in (kernel._choose, kernel._choose_among_equals))
    assert found == expected
