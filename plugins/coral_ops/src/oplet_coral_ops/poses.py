"""Poses in the outputs of a net: each begins at a keypoint of a high score and follows offsets from keypoint to keypoint.

Numerics: coral/pose_estimation/posenet_decoder.cc of libcoral; the method is PersonLab's (https://arxiv.org/abs/1803.08225).
"""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from oplet import charge, checkpoint
from oplet.kernels.arrays import Array
from oplet_coral_ops.sampling import clamp, clamped, sample

__all__ = ["EDGES", "KEYPOINTS", "Maps", "Pose", "Settings", "find_poses"]

Item = TypeVar("Item")


class ScoreQueue(Generic[Item]):
    """A priority queue that returns items of equal score in the order of libstdc++'s `push_heap` and `pop_heap`.

    >>> queue = ScoreQueue[str]()
    >>> for score, item in ((1.0, "a"), (1.0, "b"), (1.0, "c"), (0.0, "d")):
    ...     queue.push(score, item)
    >>> [queue.pop() for _ in range(4)]
    [(1.0, 'a'), (1.0, 'c'), (1.0, 'b'), (0.0, 'd')]
    """

    def __init__(self) -> None:
        self._heap: list[tuple[float, Item]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, score: float, item: Item) -> None:
        """Add an item with its score."""
        self._heap.append((score, item))
        self._rise(len(self._heap) - 1, (score, item))

    def pop(self) -> tuple[float, Item]:
        """Remove and return the item of the highest score, as (score, item)."""
        heap = self._heap
        top, last = heap[0], heap.pop()
        length = len(heap)
        if not length:
            return top
        hole = child = 0
        while child < (length - 1) // 2:
            child = 2 * child + 2
            if heap[child][0] < heap[child - 1][0]:
                child -= 1
            heap[hole] = heap[child]
            hole = child
        if length % 2 == 0 and child == (length - 2) // 2:
            child = 2 * child + 1
            heap[hole] = heap[child]
            hole = child
        self._rise(hole, last)
        return top

    def _rise(self, hole: int, entry: tuple[float, Item]) -> None:
        """Put an entry into a hole, or above it as far as those there have lower scores."""
        heap = self._heap
        while hole > 0:
            parent = (hole - 1) // 2
            if not heap[parent][0] < entry[0]:
                break
            heap[hole] = heap[parent]
            hole = parent
        heap[hole] = entry


#: Nose; eyes, ears, shoulders, elbows, wrists, hips, knees and ankles, the left one first.
KEYPOINTS = 17
#: What is joined, from the nose outwards.
EDGES = (
    (0, 1), (1, 3), (0, 2), (2, 4), (0, 5), (5, 7), (7, 9), (5, 11), (11, 13), (13, 15), (0, 6), (6, 8), (8, 10), (6, 12), (12, 14), (14, 16),
)  # fmt: skip
#: From each keypoint, in this order: to which, and the channel of the offset along y; that along x is as many channels later as
#: there are edges. Offsets outwards come first, then those inwards.
_NEIGHBOURS: list[list[tuple[int, int]]] = [
    [(child, edge) for edge, (parent, child) in enumerate(EDGES) if parent == keypoint]
    + [(parent, 2 * len(EDGES) + edge) for edge, (parent, child) in enumerate(EDGES) if child == keypoint]
    for keypoint in range(KEYPOINTS)
]
#: How often a position is refined by the offsets of its neighbourhood.
_REFINEMENTS = 5
#: What a candidate takes as Python objects, about.
_BYTES_OF_CANDIDATE = 400


class Settings(NamedTuple):
    """Options of the operator."""

    most: int  #: poses
    threshold: Any  #: of a pose's score
    stride: int  #: pixels between points of the maps
    radius: Any  #: within which two keypoints are one, in points of the maps


class Maps(NamedTuple):
    """The network's outputs for one image, float32, (height, width, channels): scores, and offsets in points of the map."""

    scores: Array  #: of each keypoint, as logits
    near: Array  #: offsets to the keypoints of the neighbourhood: all along y, then all along x
    middle: Array  #: offsets from keypoint to keypoint: outwards along y, along x, inwards along y, along x

    @property
    def last(self) -> tuple[Any, Any]:
        """The largest y and x of a point of the maps, height - 1 and width - 1, as float32."""
        height, width, _ = self.scores.shape
        return np.float32(height - 1), np.float32(width - 1)


class Pose(NamedTuple):
    """The keypoints of one person, with scores."""

    points: Array  #: y and x of each
    scores: Array  #: of each, 0 to 1
    score: Any


def find_poses(maps: Maps, settings: Settings, mask: Array) -> list[Pose]:
    """Decode the poses from the network's outputs, as PersonLab does; return them by descending score.

    Args:
        maps: the network's outputs.
        settings: the options.
        mask: scratch, bool, of shape (2, *maps.scores.shape).
    """
    radius = settings.radius * settings.radius
    queue = _candidates(maps, settings.threshold, mask)
    found: list[Pose] = []
    all_points = np.empty((0, KEYPOINTS, 2), np.float32)
    while len(found) < settings.most and queue:
        checkpoint()
        _, (y, x, keypoint) = queue.pop()
        known = all_points[: len(found), keypoint]
        if (_squared(known[:, 0] - y, known[:, 1] - x) <= radius).any():
            continue
        pose = _follow(maps, y, x, keypoint)
        if pose.score >= settings.threshold:
            if len(found) == len(all_points):
                charge(12 * all_points.nbytes + 4096)  # with the poses' own objects
                all_points = np.concatenate([all_points, np.empty((len(found) + 8, KEYPOINTS, 2), np.float32)])
            all_points[len(found)] = pose.points
            found.append(pose)
    ordered = _by_score(found)
    rescored = _by_score(_without_shared(ordered, radius))
    return [pose for pose in rescored if pose.score >= settings.threshold]


def _candidates(maps: Maps, threshold: Any, mask: Array) -> ScoreQueue[tuple[Any, Any, int]]:
    """Return the keypoints from which poses may begin: those that no neighbour has a higher score for."""
    scores = maps.scores
    highest, beaten = mask
    # The logit of the threshold, worked out in double as C++ does.
    logit = np.float32(-np.log(1.0 / (np.float64(threshold) + 1e-6) - 1.0))
    np.greater_equal(scores, logit, highest)
    height, width, _ = scores.shape
    for down in (-1, 0, 1):
        for across in (-1, 0, 1):
            here = slice(max(0, -down), height - max(0, down)), slice(max(0, -across), width - max(0, across))
            there = slice(max(0, down), height - max(0, -down)), slice(max(0, across), width - max(0, -across))
            np.greater(scores[there], scores[here], beaten[here])
            np.logical_not(beaten[here], beaten[here])
            np.logical_and(highest[here], beaten[here], highest[here])
    places = np.flatnonzero(highest)
    charge(_BYTES_OF_CANDIDATE * len(places))
    points, keypoints = np.divmod(places, KEYPOINTS)
    rows, columns = np.divmod(points, width)
    near = maps.near.reshape(-1, 2 * KEYPOINTS)
    y = clamped(rows.astype(np.float32) + near[points, keypoints], maps.last[0])
    x = clamped(columns.astype(np.float32) + near[points, keypoints + KEYPOINTS], maps.last[1])
    queue = ScoreQueue[tuple[Any, Any, int]]()
    for number, (score, keypoint) in enumerate(zip(scores.reshape(-1)[places].tolist(), keypoints.tolist())):
        if not number % 1024:
            checkpoint()
        queue.push(score, (y[number], x[number], keypoint))
    return queue


def _follow(maps: Maps, y: Any, x: Any, keypoint: int) -> Pose:
    """Return the pose around a keypoint: from those of the highest scores to their neighbours."""
    points = np.full((KEYPOINTS, 2), -1, np.float32)
    logits = np.full(KEYPOINTS, -1e5, np.float32)
    decoded: set[int] = set()
    queue = ScoreQueue[tuple[Any, Any, int]]()
    queue.push(*_scored(maps, y, x, keypoint))
    while queue:
        score, (y, x, keypoint) = queue.pop()
        if keypoint in decoded:
            continue
        decoded.add(keypoint)
        points[keypoint], logits[keypoint] = (y, x), score
        for neighbour, edge in _NEIGHBOURS[keypoint]:
            if neighbour not in decoded:
                queue.push(*_scored(maps, *_displaced(maps, y, x, edge, neighbour), neighbour))
    scores = np.float32(1) / (np.float32(1) + np.exp(-logits.astype(np.float64)).astype(np.float32))
    return Pose(points, scores, _mean(np.sort(scores)[::-1]))


def _scored(maps: Maps, y: Any, x: Any, keypoint: int) -> tuple[float, tuple[Any, Any, int]]:
    [score] = sample(maps.scores, y, x, (keypoint,))
    return float(score), (y, x, keypoint)


def _displaced(maps: Maps, y: Any, x: Any, edge: int, keypoint: int) -> tuple[Any, Any]:
    """Return where a neighbour lies."""
    last_y, last_x = maps.last
    down, across = sample(maps.middle, y, x, (edge, edge + len(EDGES)))
    y, x = clamp(y + down, last_y), clamp(x + across, last_x)
    for _ in range(_REFINEMENTS):
        down, across = sample(maps.near, y, x, (keypoint, keypoint + KEYPOINTS))
        y, x = clamp(y + down, last_y), clamp(x + across, last_x)
    return y, x


def _without_shared(poses: list[Pose], radius: Any) -> list[Pose]:
    """Return poses with scores of those keypoints alone that no pose before has at the same place."""
    points = np.array([pose.points for pose in poses]).reshape(-1, KEYPOINTS, 2)
    found = []
    for number, pose in enumerate(poses):
        checkpoint()
        offsets = points[:number] - pose.points
        shared = (_squared(offsets[..., 0], offsets[..., 1]) <= radius).any(0)
        order = np.argsort(-pose.scores, kind="stable")
        found.append(pose._replace(score=_mean(np.where(shared[order], np.float32(0), pose.scores[order]))))
    return found


def _mean(scores: Array) -> Any:
    """Return the mean of a pose's scores, which are added in their order."""
    total = np.float32(0)
    for score in scores:
        total += score
    return total / np.float32(KEYPOINTS)


def _by_score(poses: list[Pose]) -> list[Pose]:
    return sorted(poses, key=lambda pose: -float(pose.score))


def _squared(y: Array, x: Array) -> Array:
    """Return squared distances."""
    found: Array = y * y + x * x
    return found
