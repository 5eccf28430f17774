"""TFLite_Detection_PostProcess: boxes are decoded with their anchors and selected by non-maximum suppression.

Outputs: boxes (1, n, 4) as ymin, xmin, ymax, xmax; classes (1, n); scores (1, n); the number of boxes (1,); positions beyond it are
0.

Numerics: tflite/kernels/detection_postprocess.cc
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oplet import Context, Node, Registration, Tensor, TensorType, charge, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.operands import ensure_operands
from oplet.kernels.options import CustomOptions
from oplet_builtin_ops.suppression.scored_boxes import fast_suppression, regular_suppression

TYPES = (TensorType.FLOAT32, TensorType.UINT8)


class Settings(NamedTuple):
    """The custom options."""

    detections: int
    classes_per_detection: int
    detections_per_class: int
    regular: bool
    score_threshold: float
    overlap_threshold: float
    classes: int
    scales: tuple[float, float, float, float]


def _settings(node: Node) -> Settings:
    options = CustomOptions(node)
    y, x, height, width = (float(np.float32(options.real(f"{side}_scale"))) for side in "yxhw")
    settings = Settings(
        options.integer("max_detections"),
        options.integer("max_classes_per_detection"),
        options.integer("detections_per_class") if options.has("detections_per_class") else 100,
        options.boolean("use_regular_nms"),
        options.real("nms_score_threshold"),
        options.real("nms_iou_threshold"),
        options.integer("num_classes"),
        (y, x, height, width),
    )
    overlap, detections = settings.overlap_threshold, settings.detections
    ensure(0 < overlap <= 1, f"nms_iou_threshold is {overlap:g}; it must be above 0 and at most 1.")
    ensure(detections >= 0, f"max_detections is {detections}; it may not be negative.")
    ensure(settings.classes_per_detection >= 0, f"max_classes_per_detection is {settings.classes_per_detection}.")
    if settings.regular:
        per_class = min(settings.detections_per_class, detections)
        ensure(
            per_class > 0, f"max_detections or detections_per_class is {per_class}; both must be above 0 for regular suppression."
        )
    else:
        ensure(settings.classes_per_detection > 0, "max_classes_per_detection is 0; it must be above 0 for fast suppression.")
    ensure(all(settings.scales), f"the scales of boxes are {settings.scales}; none may be 0.")
    return settings


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 3, 4)
    boxes, scores, anchors = node.inputs
    settings = _settings(node)
    ensure(boxes.ndim == 3 and boxes.shape[0] == 1, f"the boxes {boxes} must have shape [1, boxes, values].")
    ensure(boxes.shape[2] >= 4, f"the boxes {boxes} must have at least 4 values each.")
    ensure_type(boxes, *TYPES)
    ensure_type(scores, *TYPES)
    ensure_type(anchors, boxes.type)
    count = boxes.shape[1]
    ensure(scores.ndim == 3 and scores.shape[:2] == (1, count), f"the scores {scores} must have shape [1, {count}, classes].")
    ensure(
        anchors.ndim == 2 and anchors.size >= 4 * count, f"the anchors {anchors} must have 4 values for each of {count} boxes."
    )
    background = scores.shape[2] - settings.classes
    ensure(background in (0, 1), f"num_classes is {settings.classes}, but {scores} has {scores.shape[2]} classes.")
    ensure(settings.classes >= 1, f"num_classes is {settings.classes}; there must be one.")
    places = settings.detections * settings.classes_per_detection
    ensure(
        not settings.regular or places >= settings.detections,
        "max_classes_per_detection is 0, which leaves no room for detections.",
    )
    for output, shape in zip(node.outputs, ((1, places, 4), (1, places), (1, places), (1,))):
        context.set_type(output, TensorType.FLOAT32)
        context.resize_tensor(output, shape)
    node.prepared = settings


def _reals(tensor: Tensor) -> Array:
    """The values as float32; uint8 ones are dequantized."""
    if tensor.type == TensorType.FLOAT32:
        return tensor.data
    return np.asarray((tensor.data.astype(np.float32) - np.float32(tensor.zero_point)) * np.float32(tensor.scale))


#: Bytes of scratch per box while its corners are computed.
_BOX_BYTES = 160


def _decode(boxes: Array, anchors: Array, scales: tuple[float, float, float, float]) -> Array:
    """Corners (count, 4) of boxes given by centre and size relative to anchors."""
    y, x, height, width = (boxes[:, i].astype(np.float64) / scales[i] for i in range(4))
    centre_y, centre_x, anchor_height, anchor_width = (anchors[:, i].astype(np.float64) for i in range(4))
    with np.errstate(over="ignore"):
        y, x = (y * anchor_height + centre_y).astype(np.float32), (x * anchor_width + centre_x).astype(np.float32)
        half_height = (0.5 * np.exp(height) * anchor_height).astype(np.float32)
        half_width = (0.5 * np.exp(width) * anchor_width).astype(np.float32)
    return np.stack([y - half_height, x - half_width, y + half_height, x + half_width], axis=1)


def bind(context: Context, node: Node) -> Thunk:
    boxes, scores, anchors = node.inputs
    corners_out, classes_out, scores_out, count_out = (tensor.data for tensor in node.outputs)
    settings: Settings = node.prepared
    count = boxes.shape[1]
    first = scores.shape[2] - settings.classes

    def run() -> None:
        charge(_BOX_BYTES * count + 16 * scores.size)
        corners = _decode(_reals(boxes)[0, :, :4], _reals(anchors).reshape(-1)[: 4 * count].reshape(count, 4), settings.scales)
        crossed = np.flatnonzero((corners[:, 0] > corners[:, 2]) | (corners[:, 1] > corners[:, 3]))
        ensure(not crossed.size, f"box {crossed[:1]} of {boxes} has its corners on the wrong sides.")
        by_class = _reals(scores)[0, :, first:]
        for output in (corners_out, classes_out, scores_out):
            output.fill(0)
        limits = settings.score_threshold, settings.overlap_threshold, settings.detections
        if settings.regular:
            picked, found = regular_suppression(corners, by_class, *limits, settings.detections_per_class)
            columns = found[:, None]
        else:
            picked, columns = fast_suppression(corners, by_class, *limits, settings.classes_per_detection)
        width = 1 if settings.regular else settings.classes_per_detection
        used = columns.shape[1]
        for target, values in (
            (classes_out, columns),
            (scores_out, np.take_along_axis(by_class[picked], columns, axis=1)),
            (corners_out, np.repeat(corners[picked, None], used, axis=1)),
        ):
            rows = target[0, : len(picked) * width].reshape(len(picked), width, *target.shape[2:])
            rows[:, :used] = values
        count_out[0] = len(picked)

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=TYPES)
