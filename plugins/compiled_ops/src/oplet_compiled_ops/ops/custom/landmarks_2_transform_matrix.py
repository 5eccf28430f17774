"""Landmarks2TransformMatrix, version 2, compiled: the matrix that crops a rotated box around some landmarks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from oplet import Context, Node, NodeLimits, TensorType, decline
from oplet_compiled_ops.library.kernels import kernel
from oplet_compiled_ops.library.memory import flat
from oplet_compiled_ops.overriding import Bind, Thunk, override
from oplet_compiled_ops.threads.team import Step, ready, thunk
from oplet_mediapipe_ops.ops.landmarks_2_transform_matrix_v2 import REGISTRATION as BUILTIN

#: The most landmarks in a box, as one call looks at all of them.
_MOST = 1 << 20


@kernel("void(f4[:,::1], i8[::1], f4[::1], i8, i8, f8, f8, f8, f8, f8)")
def BOX_MATRIX(landmarks, subset, output, left, right, angle, height, width, scale_y, scale_x):  # type: ignore[no-untyped-def]
    """Compute the matrix that maps the pixels of a crop to places in a picture: the crop of a rotated box around landmarks.

    Args:
        landmarks: (landmarks, 3): x, y and z of each.
        subset: the numbers of the landmarks that the box goes around.
        output: receives the 4 x 4 matrix, flat.
        left: the number of the landmark at which the line begins that gives the box's rotation.
        right: the number of the landmark at which that line ends.
        angle: the angle that the line has in the crop, in radians.
        height: the rows of the crop.
        width: the columns of the crop.
        scale_y: how many times as high as the box the crop is.
        scale_x: how many times as wide as the box it is.
    """
    turn = angle - math.atan2(
        np.float64(landmarks[right, 1] - landmarks[left, 1]), np.float64(landmarks[right, 0] - landmarks[left, 0])
    )
    sine, cosine = math.sin(turn), math.cos(turn)
    low_x = low_y = math.inf
    high_x = high_y = -math.inf
    for i in range(subset.size):
        px, py = np.float64(landmarks[subset[i], 0]), np.float64(landmarks[subset[i], 1])
        x, y = px * cosine - py * sine, px * sine + py * cosine
        # Once NaN, a bound stays so: no comparison with it is true.
        low_x = x if (x < low_x) | (x != x) else low_x
        low_y = y if (y < low_y) | (y != y) else low_y
        high_x = x if (x > high_x) | (x != x) else high_x
        high_y = y if (y > high_y) | (y != y) else high_y
    sine = -sine  # turned back
    middle_x, middle_y = (low_x + high_x) / 2, (low_y + high_y) / 2
    x, y = middle_x * cosine - middle_y * sine, middle_x * sine + middle_y * cosine
    across, down = scale_x * (high_x - low_x) / width, scale_y * (high_y - low_y) / height
    a, b, c, d = cosine * across, -sine * down, sine * across, cosine * down
    for i in range(16):
        output[i] = 0
    output[0], output[1], output[3] = a, b, x - (a * width + b * height) / 2
    output[4], output[5], output[7] = c, d, y - (c * width + d * height) / 2
    output[10] = output[15] = 1


def plan(context: Context, node: Node) -> Bind:
    options: Any = node.prepared
    crop = options.crop
    if len(crop.subset) > _MOST:
        decline("its box goes around too many landmarks.")
    ready(BOX_MATRIX)
    subset = np.asarray(crop.subset, np.int64)
    numbers = crop.left, crop.right, options.angle, *options.output_size, *options.scales

    def bind() -> Thunk:
        arrays = node.inputs[0].data.reshape(-1, 3), subset, flat(node.outputs[0].data)
        return thunk([Step(BOX_MATRIX, [(*arrays, *numbers)])])

    return bind


REGISTRATION = override(BUILTIN, plan, NodeLimits(inputs=[[TensorType.FLOAT32]]))
