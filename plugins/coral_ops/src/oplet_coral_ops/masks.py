"""Whom each point of a picture belongs to: the pose to whose keypoints its own offsets come nearest.

Numerics: coral/pose_estimation/posenet_decoder.cc of libcoral
"""

from __future__ import annotations

import numpy as np

from oplet import checkpoint
from oplet.kernels.arrays import Array
from oplet_coral_ops.poses import KEYPOINTS
from oplet_coral_ops.sampling import clamped, sampled

__all__ = ["write_masks"]

#: How often a position follows the offsets.
_STEPS = 3
#: Points that are worked on at once.
_AT_ONCE = 1 << 11


def write_masks(far: Array, points: Array, stride: int, masks: Array) -> None:
    """Write instance masks: for each point 1 into the mask of the pose that it belongs to, 0 into the masks of all others.

    Args:
        far: long-range offsets from each point to its person's keypoints, in points, (height, width, 34): 17 along y, then 17
            along x.
        points: the keypoints (y, x) of each pose, in pixels, (poses, 17, 2).
        stride: pixels between two points of the map.
        masks: receives the masks, (most poses, height, width).
    """
    masks.fill(0)
    height, width, _ = far.shape
    if not len(points):
        return
    flat = masks.reshape(len(masks), -1)
    for start in range(0, height * width, _AT_ONCE):
        places = np.arange(start, min(height * width, start + _AT_ONCE))
        y, x = _embedded(far, places, stride)
        best: Array = np.zeros(len(places), np.intp)
        least = None
        for number, pose in enumerate(points):
            checkpoint()
            distance = np.zeros(len(places), np.float32)
            for keypoint in range(KEYPOINTS):
                down, across = pose[keypoint, 0] - y[:, keypoint], pose[keypoint, 1] - x[:, keypoint]
                distance += down * down + across * across
            if least is None:
                least = distance
                continue
            nearer = distance < least
            best[nearer], least[nearer] = number, distance[nearer]
        flat[best, places] = 1


def _embedded(far: Array, places: Array, stride: int) -> tuple[Array, Array]:
    """Return where the keypoints of each point's person are, in pixels."""
    height, width, _ = far.shape
    along_y, along_x = far[..., :KEYPOINTS], far[..., KEYPOINTS:]
    rows, columns = np.divmod(places, width)
    y = np.repeat(rows.astype(np.float32)[:, None], KEYPOINTS, axis=1)
    x = np.repeat(columns.astype(np.float32)[:, None], KEYPOINTS, axis=1)
    for _ in range(_STEPS):
        down, across = sampled(along_y, y, x), sampled(along_x, y, x)
        y, x = clamped(y + down, np.float32(height - 1)), clamped(x + across, np.float32(width - 1))
    return y * np.float32(stride), x * np.float32(stride)
