"""What libcoral defines as a decoder's answer, one number at a time in float32: the judge of the kernels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from plugins.coral_ops.tests.persons import EDGES

__all__ = ["masks_of", "poses_of"]

Array = np.ndarray[Any, Any]
F = np.float32


def limited(value: Any, size: int) -> Any:
    return F(0) if value < 0 else F(size - 1) if value > size - 1 else value


def value_at(map: Array, y: Any, x: Any, channel: int) -> Any:
    (top, low), (left, right) = ((math.floor(at), math.ceil(at)) for at in (y, x))
    down, across = F(y - top), F(x - left)
    upper = F(F(1 - across) * map[top, left, channel]) + F(across * map[top, right, channel])
    lower = F(F(1 - across) * map[low, left, channel]) + F(across * map[low, right, channel])
    return F(F(F(1) - down) * upper) + F(down * lower)


def moved(map: Array, y: Any, x: Any, channels: tuple[int, int]) -> tuple[Any, Any]:
    down, across = (value_at(map, y, x, channel) for channel in channels)
    return limited(y + down, map.shape[0]), limited(x + across, map.shape[1])


def distance(a: Any, b: Any) -> Any:
    down, across = F(b[0] - a[0]), F(b[1] - a[1])
    return F(down * down) + F(across * across)


def poses_of(maps: list[Array], most: int, threshold: float, stride: int, radius: float) -> list[tuple[Array, Array, Any]]:
    """Keypoints in pixels, their scores, and the score of each pose. Of equal scores any may come first."""
    scores, near, middle = (each[0] * F(1 if number == 0 else 1 / stride) for number, each in enumerate(maps[:3]))
    height, width, _ = scores.shape
    squared = F(F(radius) / F(stride)) ** 2
    logit = F(-math.log(1 / (float(F(threshold)) + 1e-6) - 1))
    roots = []
    for y in range(height):
        for x in range(width):
            for k in range(17):
                around = scores[max(0, y - 1) : y + 2, max(0, x - 1) : x + 2, k]
                if scores[y, x, k] >= logit and not (around > scores[y, x, k]).any():
                    place = limited(F(y) + near[y, x, k], height), limited(F(x) + near[y, x, k + 17], width)
                    roots.append((scores[y, x, k], place, k))
    poses: list[tuple[dict[int, Any], dict[int, Any], Any]] = []
    for _, place, k in sorted(roots, key=lambda root: -root[0]):
        if len(poses) == most:
            break
        if any(distance(place, points[k]) <= squared for points, _, _ in poses):
            continue
        points: dict[int, Any] = {}
        logits: dict[int, Any] = {}
        waiting = [(value_at(scores, *place, k), place, k)]
        while waiting:
            waiting.sort(key=lambda each: each[0])
            score, place, k = waiting.pop()
            if k in points:
                continue
            points[k], logits[k] = place, score
            for edge, (parent, child) in enumerate(EDGES):
                for begin, end, first in ((parent, child, edge), (child, parent, 32 + edge)):
                    if begin == k and end not in points:
                        target = moved(middle, *place, (first, first + 16))
                        for _ in range(5):
                            target = moved(near, *target, (end, end + 17))
                        waiting.append((value_at(scores, *target, end), target, end))
        each = {k: F(1 / (1 + F(math.exp(-float(logits[k]))))) for k in range(17)}
        if (score := mean(sorted(each.values(), reverse=True))) >= F(threshold):
            poses.append((points, each, score))
    poses.sort(key=lambda pose: -pose[2])
    rescored = []
    for number, (points, each, _) in enumerate(poses):
        kept = [
            k
            for k in sorted(range(17), key=lambda k: -each[k])
            if not any(distance(points[k], other[k]) <= squared for other, _, _ in poses[:number])
        ]
        rescored.append((points, each, mean([each[k] for k in kept])))
    rescored.sort(key=lambda pose: -pose[2])
    return [
        (np.array([points[k] for k in range(17)], F) * F(stride), np.array([each[k] for k in range(17)], F), score)
        for points, each, score in rescored
        if score >= F(threshold)
    ]


def mean(values: list[Any]) -> Any:
    total = F(0)
    for value in values:
        total = F(total + value)
    return F(total / F(17))


def masks_of(far: Array, poses: list[Array], stride: int) -> Array:
    """The mask of each pose."""
    map = far[0] * F(1 / stride)
    height, width, _ = map.shape
    masks = np.zeros((len(poses), height, width), F)
    for y in range(height):
        for x in range(width):
            distances = [F(0)] * len(poses)
            for k in range(17):
                place = F(y), F(x)
                for _ in range(3):
                    place = moved(map, *place, (k, k + 17))
                pixel = F(place[0] * F(stride)), F(place[1] * F(stride))
                distances = [F(total + distance(pixel, pose[k])) for total, pose in zip(distances, poses)]
            masks[distances.index(min(distances)), y, x] = 1
    return masks
