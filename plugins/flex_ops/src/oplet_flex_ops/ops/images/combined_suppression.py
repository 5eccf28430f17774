"""CombinedNonMaxSuppression: the best boxes of every image, suppressed per class.

Numerics: tensorflow/core/kernels/image/non_max_suppression_op.cc
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oplet import Node, ensure
from oplet.kernels.arrays import Array, Shape
from oplet.kernels.axes import read_int
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.kernel import filled
from oplet_flex_ops.ops.images.suppression import overlaps, suppress


class _Settings(NamedTuple):
    pad_per_class: bool
    clip: bool


def _settings(attributes: Attributes) -> _Settings:
    return _Settings(attributes.flag("pad_per_class", default=False), attributes.flag("clip_boxes", default=True))


def _shapes(node: Node, given: _Settings) -> list[Shape]:
    boxes, scores = node.inputs[:2]
    per_class, total = read_int(node.inputs[2]), read_int(node.inputs[3])
    batch, count, classes = scores.shape
    ensure(
        boxes.shape in ((batch, count, 1, 4), (batch, count, classes, 4)),
        f"{boxes} must be [{batch}, {count}, 1 or {classes}, 4] for the scores {scores}.",
    )
    ensure(
        per_class > 0 and total > 0,
        f"max_output_size_per_class is {per_class} and max_total_size {total}; both must be above zero.",
    )
    size = min(total, per_class * classes) if given.pad_per_class else total
    return [(batch, size, 4), (batch, size), (batch, size), (batch,)]


@filled(
    "CombinedNonMaxSuppression",
    "boxes: FLOAT32[4], scores: FLOAT32[3], max_output_size_per_class: INT32[0]!, max_total_size: INT32[0]!, "
    "iou_threshold: FLOAT32[0], score_threshold: FLOAT32[0] "
    "-> nmsed_boxes: FLOAT32, nmsed_scores: FLOAT32, nmsed_classes: FLOAT32, valid_detections: INT32",
    _shapes,
    _settings,
)
def COMBINEDNONMAXSUPPRESSION(
    given: _Settings,
    outputs: list[Array],
    boxes: Array,
    scores: Array,
    per_class: Array,
    total: Array,
    overlap: Array,
    least: Array,
) -> None:
    ensure(0 <= float(overlap) <= 1, f"iou_threshold is {float(overlap):g}; it must be in 0 to 1.")
    for output in outputs:
        output.fill(0)
    found_boxes, found_scores, found_classes, counts = outputs
    for image, (corners, rated) in enumerate(zip(boxes, scores)):
        shared = overlaps(corners[:, 0]) if corners.shape[1] == 1 else None
        numbers: list[Array] = []
        for column in range(rated.shape[1]):
            measure = shared or overlaps(corners[:, column])
            numbers.append(suppress(measure, rated[:, column], min(int(per_class), len(rated)), float(overlap), float(least)))
        places = np.concatenate([np.zeros(0, np.int32), *numbers])
        labels = np.repeat(np.arange(len(numbers)), [len(each) for each in numbers])
        order = np.argsort(-rated[places, labels], kind="stable")[: found_scores.shape[1]]
        places, labels = places[order], labels[order]
        chosen = corners[places, labels if corners.shape[1] > 1 else 0]
        count = len(places)
        found_boxes[image, :count] = np.clip(chosen, 0, 1) if given.clip else chosen
        found_scores[image, :count], found_classes[image, :count], counts[image] = rated[places, labels], labels, count
