"""Landmarks2TransformMatrix, version 2: the matrix that crops a rotated box around some landmarks.

The landmarks are in pixels of the image, which is turned so that the line between two of them has a given angle.

Numerics: mediapipe/util/tflite/operations/landmarks_to_transform_matrix.cc (v2)
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from oplet import Context, Node, Registration, TensorType, ensure
from oplet.kernels.arrays import Thunk
from oplet.kernels.options import integer, number
from oplet_mediapipe_ops.landmarks import Crop, bounding_box, prepare_landmarks, turned


class _Options(NamedTuple):
    crop: Crop
    angle: float
    output_size: tuple[int, int]  #: height, width
    scales: tuple[float, float]  #: along y, along x


def prepare(context: Context, node: Node) -> None:
    node.prepared = options = _read(node.custom_map())
    shape = node.inputs[0].shape if node.has_input(0) else ()
    fits = len(shape) == 3 and shape[0] == 1 and shape[2] == 3
    prepare_landmarks(context, node, options.crop, fits, "[1, points, 3]")


def _read(options: dict[str, Any]) -> _Options:
    scales = number(options, "scale_y"), number(options, "scale_x")
    ensure(min(scales) > 0, f"the options 'scale_y' and 'scale_x' are {scales[0]} and {scales[1]}; they must be above zero.")
    return _Options(
        Crop(options, "subset_idxs"),
        number(options, "target_rotation_radians"),
        (integer(options, "output_height", least=1), integer(options, "output_width", least=1)),
        scales,
    )


def bind(context: Context, node: Node) -> Thunk:
    crop, angle, (height, width), (scale_y, scale_x) = node.prepared
    landmarks, output = node.inputs[0].data.reshape(-1, 3), node.outputs[0].data.reshape(16)

    def run() -> None:
        dx, dy = crop.direction(landmarks)
        turn = angle - math.atan2(dy, dx)
        (low_x, low_y), (high_x, high_y) = bounding_box(landmarks.take(crop.subset, 0), turn)
        sine, cosine = math.sin(-turn), math.cos(turn)
        x, y = turned((low_x + high_x) / 2, (low_y + high_y) / 2, sine, cosine)
        across = scale_x * (high_x - low_x) / width
        down = scale_y * (high_y - low_y) / height
        a, b, c, d = cosine * across, -sine * down, sine * across, cosine * down
        # The output's centre goes to the box's.
        output[:] = (
            *(a, b, 0, x - (a * width + b * height) / 2),
            *(c, d, 0, y - (c * width + d * height) / 2),
            *(0, 0, 1, 0),
            *(0, 0, 0, 1),
        )

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(TensorType.FLOAT32,))
