"""Landmarks2TransformMatrix, version 1: the matrix that crops an upright box around some landmarks.

The landmarks lie in a square of `landmarks_range`, whatever the image's size; positions are pixels' corners.

Numerics: mediapipe/util/tflite/operations/landmarks_to_transform_matrix.cc (v1)
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.options import integer, integers, number
from oplet_mediapipe_ops.landmarks import Crop, bounding_box, prepare_landmarks, turned

#: Landmarks beyond this are taken for being there.
_FAR = 100_000.0
_IDENTITY = np.eye(4, dtype=np.float32)


class _Options(NamedTuple):
    crop: Crop
    landmarks_range: int
    box_scale: float
    input_size: list[int]  #: height, width
    output_size: list[int]  #: height, width


def prepare(context: Context, node: Node) -> None:
    node.prepared = options = _read(node.custom_map())
    shape = node.inputs[0].shape if node.has_input(0) else ()
    prepare_landmarks(context, node, options.crop, len(shape) == 4 and shape[:3] == (1, 1, 1), "[1, 1, 1, 3 * points]")


def _read(options: dict[str, Any]) -> _Options:
    integer(options, "dimensions", least=3)
    ensure(options["dimensions"] == 3, f"the option 'dimensions' is {options['dimensions']}; landmarks must have 3.")
    read = _Options(
        Crop(options, "subset"),
        integer(options, "landmarks_range", least=1),
        number(options, "bbox_size_multiplier"),
        integers(options, "input_hw", least=1, count=2),
        integers(options, "output_hw", least=2, count=2),
    )
    ensure(read.box_scale != 0, "the option 'bbox_size_multiplier' must not be 0.")
    return read


def bind(context: Context, node: Node) -> Thunk:
    crop, extent, box_scale, input_size, output_size = node.prepared
    landmarks, output = node.inputs[0].data.reshape(-1, 3), node.outputs[0].data.reshape(4, 4)
    height, width = output_size
    to_relative = np.array([[2 / (width - 1), 0, -1], [0, 2 / (height - 1), -1], [0, 0, 1]])
    half_height, half_width = ((size - 1) / 2 for size in input_size)
    to_absolute = np.array([[half_width, 0, half_width], [0, half_height, half_height], [0, 0, 1]])

    def run() -> None:
        dx, dy = crop.direction(landmarks)
        slope = np.arctan(np.float64(dy) / np.float64(dx))  # an eye line that runs straight down is no error
        (low_x, low_y), (high_x, high_y) = bounding_box(landmarks.take(crop.subset, 0), -float(slope), _FAR)
        sine, cosine = math.sin(slope), math.cos(slope)
        x, y = turned((low_x + high_x) / 2, (low_y + high_y) / 2, sine, cosine)
        across, down = (high_x - low_x) * box_scale / extent, (high_y - low_y) * box_scale / extent
        place = np.array(
            [
                [cosine * across, -sine * down, x / extent * 2 - 1],
                [sine * across, cosine * down, y / extent * 2 - 1],
                [0, 0, 1],
            ]
        )
        whole: Array = to_absolute @ place @ to_relative
        np.copyto(output, _IDENTITY)
        output[:2, :2] = whole[:2, :2]
        output[:2, 3] = whole[:2, 2]

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(TensorType.FLOAT32,))
