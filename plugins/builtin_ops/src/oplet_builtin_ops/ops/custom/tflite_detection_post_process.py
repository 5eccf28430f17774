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
from oplet_builtin_ops.custom_options import CustomOptions
from oplet_builtin_ops.suppression.boxes import Boxes
from oplet_builtin_ops.suppression.scored_boxes import fast_suppression, regular_suppression

TYPES = (TensorType.FLOAT32, TensorType.UINT8)


class Settings(NamedTuple):
    """The custom options: numbers of boxes and classes, thresholds, and the scales of box coordinates."""

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
    """Return the tensor's values as float32; dequantize uint8."""
    if tensor.type == TensorType.FLOAT32:
        return tensor.data
    return np.asarray((tensor.data.astype(np.float32) - np.float32(tensor.zero_point)) * np.float32(tensor.scale))


#: Bytes of scratch per box while its corners are computed.
_BOX_BYTES = 160


def _columns(anchors: Tensor, count: int) -> Array:
    """Return the anchors' values as float64 columns, shape (4, count)."""
    return np.ascontiguousarray(_reals(anchors).reshape(-1)[: 4 * count].reshape(count, 4).T.astype(np.float64))


class _Decoder:
    """Decodes boxes: centres and sizes relative to anchors become corners, in preallocated memory.

    Attributes:
        corners: (4, count): the upper, left, lower and right edges, float32.

    Args:
        count: the number of boxes.
        scales: what the y, x, height and width of each box are divided by.
    """

    def __init__(self, count: int, scales: tuple[float, float, float, float]) -> None:
        self.corners = np.empty((4, count), np.float32)
        self._scales = np.array(scales)[:, None]
        self._half = np.array(0.5)
        self._values, self._middles = np.empty((4, count)), np.empty((2, 2, count), np.float32)
        self._crossed = np.empty((2, count), np.bool_)

    def decode(self, boxes: Array, anchors: Array) -> Boxes:
        """Decode boxes into `corners`, and return them as `Boxes`.

        Args:
            boxes: (count, 4 or more): y, x, height and width; further values are left out.
            anchors: (4, count), in the same order.

        Raises:
            EnsureError: the upper edge of a box lies below the lower one, or its left edge right of the right one.
        """
        values, corners = self._values, self.corners
        np.divide(boxes[:, :4].T, self._scales, values)
        centres, sizes = values[:2], values[2:]
        np.multiply(centres, anchors[2:], centres)
        np.add(centres, anchors[:2], centres)
        np.exp(sizes, sizes)
        np.multiply(sizes, self._half, sizes)
        np.multiply(sizes, anchors[2:], sizes)
        self._middles.reshape(values.shape)[...] = values
        middles, halves = self._middles
        low, high = corners[:2], corners[2:]
        np.subtract(middles, halves, low)
        np.add(middles, halves, high)
        if np.logical_or.reduce(np.greater(low, high, self._crossed), None):
            ensure(False, f"box {np.flatnonzero(self._crossed.any(axis=0))[:1]} has its corners on the wrong sides.")
        edges = corners.copy()
        np.negative(low, edges[:2])
        np.subtract(high, low, middles)
        areas = middles[0] * middles[1]
        return Boxes(edges, areas, bool(np.logical_or.reduce(areas <= 0)))


def bind(context: Context, node: Node) -> Thunk:
    boxes, scores, anchors = node.inputs
    outputs = [tensor.data for tensor in node.outputs]
    corners_out, classes_out, scores_out, count_out = outputs
    settings: Settings = node.prepared
    count = boxes.shape[1]
    first = scores.shape[2] - settings.classes
    charge(_BOX_BYTES * count)
    decoder = _Decoder(count, settings.scales)
    fixed = _columns(anchors, count) if anchors.is_constant else None
    width = 1 if settings.regular else settings.classes_per_detection
    limits = settings.score_threshold, settings.overlap_threshold, settings.detections

    def run() -> None:
        charge(16 * scores.size)
        found = decoder.decode(_reals(boxes)[0], _columns(anchors, count) if fixed is None else fixed)
        by_class = _reals(scores)[0, :, first:]
        if settings.regular:
            picked, kinds = regular_suppression(found, by_class, *limits, settings.detections_per_class)
        else:
            picked, kinds = fast_suppression(found, by_class, *limits, width)
        number, used = kinds.shape
        for output in outputs:
            output.fill(0)
        if number:
            for target, values in (
                (classes_out, kinds),
                (scores_out, by_class[picked[:, None], kinds]),
                (corners_out, decoder.corners.T[picked, None]),
            ):
                target[0, : number * width].reshape(number, width, *target.shape[2:])[:, :used] = values
        count_out[0] = number

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=TYPES)
