"""Objects that a detector found, read out of its outputs as the model's metadata describe them.

By TFLITE_METADATA: an output of boxes (BoundingBoxProperties), one of classes (TENSOR_VALUE_LABELS, or of that name), one of scores and one
with their number; or boxes and scores that `anchored` decodes. By ultralytics': what `exported` reads. Without metadata of boxes: the outputs of a TFLite_Detection_PostProcess.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oplet import Model
from oplet.errors import ModelError, OpletError, TensorError
from oplet.texts import shown
from oplet_tools.metadata.anchored import MOST_SHARED, Anchored, anchored_in, apart
from oplet_tools.metadata.attached_files import attached_files
from oplet_tools.metadata.exported import LEAST_SCORE, MOST_OVERLAP, Exported, exported_as
from oplet_tools.metadata.output_rules import Reporter, has_readable_tables, output_labels
from oplet_tools.metadata.scores import ScoreRules, score_rules_of
from oplet_tools.metadata.tables import (
    AssociatedFileType,
    BoundingBoxProperties,
    BoundingBoxType,
    CoordinateType,
    TensorMetadata,
    tensor_metadata,
)
from oplet_tools.metadata.ultralytics import ultralytics_of

__all__ = ["Detection", "Detector", "detector_of"]

Array = NDArray[Any]
_POSTPROCESS = "TFLite_Detection_PostProcess"


class Detection(NamedTuple):
    """An object that an object-detection model found."""

    label: str  #: The label of its class; "" if there is none.
    number: int  #: The index of its class.
    score: float
    #: Left, top, right and bottom, as fractions of the input's width and height; in `running.detecting.Objects`, in the unit that
    #: these name.
    box: tuple[float, float, float, float]
    points: tuple[tuple[float, ...], ...] = ()  #: Corners of a rotated box, or keypoints: (x, y) each, or (x, y, visibility).


class Detector(NamedTuple):
    """The format of an object-detection model's outputs, by the model's metadata."""

    boxes: int  #: Tensor index of the output with the boxes.
    classes: int = -1  #: Tensor index of the output with the objects' classes; -1 if the output `boxes` has everything.
    scores: int = -1  #: Tensor index of the output with the scores; -1 if the output `boxes` has everything.
    number: int = -1  #: Tensor index of the output with the number of objects; -1 if all boxes count.
    order: tuple[int, ...] = (0, 1, 2, 3)  #: The positions, in a box of the output, of the four numbers that `kind` names.
    kind: BoundingBoxType = BoundingBoxType.BOUNDARIES  #: The meaning of a box's four numbers, such as left, top, right, bottom.
    in_pixels: bool = False  #: Whether boxes are in pixels of the input; otherwise in fractions of its size.
    labels: tuple[str, ...] = ()  #: Labels of the classes, by index.
    rules: ScoreRules = ScoreRules()  #: Calibration and threshold of the scores.
    #: The format of the only output of a model that ultralytics (YOLO) exported; None for other models.
    exported: Exported | None = None
    #: How boxes are decoded from anchors and then selected; None where the model itself does so.
    anchored: Anchored | None = None

    def read(
        self, outputs: Mapping[int, Array], size: tuple[int, int], shown: tuple[float, float] | None = None
    ) -> list[Detection]:
        """Return the objects in the outputs of a run, the highest score first.

        Args:
            outputs: real values of the outputs, by tensor index.
            size: height and width of the model's input, in pixels.
            shown: height and width, in pixels of the original picture, of the area that was resized to the input; None for `size`.
        """
        if self.exported is not None:
            found = self.exported.read(outputs[self.boxes], size, shown)
            return [Detection(self._label(each.number), *each) for each in found]
        if self.anchored is not None:
            boxes, classes, scores = self.anchored.decode(outputs[self.boxes], outputs[self.scores])
            return self._sorted(boxes, classes, scores)
        count = int(_finite(outputs[self.number]).reshape(-1)[:1].sum()) if self.number >= 0 else 0
        boxes = outputs[self.boxes].reshape(-1, 4).astype(np.float64)[:, list(self.order)]
        classes = _whole(outputs[self.classes].reshape(-1))
        scores = outputs[self.scores].reshape(-1).astype(np.float64)
        few = min(len(boxes), len(classes), len(scores), len(boxes) if self.number < 0 else max(count, 0))
        boxes, classes, scores = boxes[:few], classes[:few], scores[:few]
        if self.rules.calibration is not None:
            scores = self.rules.calibration.apply(scores, classes)
        boxes = _boundaries(boxes, self.kind)
        if self.in_pixels:
            boxes = boxes / np.array([size[1], size[0]] * 2, np.float64)
        return self._sorted(boxes, classes, scores)

    def _sorted(self, boxes: Array, classes: Array, scores: Array) -> list[Detection]:
        # As MediaPipe has it, a box whose right side is left of its left one, or whose sides are no numbers, is none.
        kept = self.rules.kept(scores) & (boxes[:, 2] >= boxes[:, 0]) & (boxes[:, 3] >= boxes[:, 1])
        boxes, classes, scores = boxes[kept], classes[kept], scores[kept]
        order = np.argsort(-scores, kind="stable")
        if self.anchored is not None:
            order = order[apart(boxes[order])]
        return [self._detection(int(classes[place]), float(scores[place]), boxes[place]) for place in order]

    def _detection(self, index: int, score: float, box: Array) -> Detection:
        left, top, right, bottom = box.tolist()
        return Detection(self._label(index), index, score, (left, top, right, bottom))

    def _label(self, index: int) -> str:
        return self.labels[index] if 0 <= index < len(self.labels) else ""


def detector_of(
    model: Model,
    subgraph: int,
    outputs: Mapping[int, tuple[str, tuple[int, ...]]],
    channels_first: bool,
    reporter: Reporter,
    *,
    locale: str = "",
) -> Detector | None:
    """Return the format of an object-detection model's outputs, and report it; None for other models, and for damaged metadata (reported).

    Args:
        subgraph: the subgraph's index.
        outputs: name and shape of each output, by tensor index.
        channels_first: whether the input is NCHW; otherwise NHWC.
        reporter: receives the messages.
        locale: the language of the labels; "" for the first in the metadata.
    """
    if not has_readable_tables(model):  # what is said of labels and pictures tells it
        return None
    try:
        return (
            _by_tables(model, subgraph, outputs, reporter, locale)
            or _by_anchors(model, subgraph, outputs, reporter, locale)
            or _by_ultralytics(model, outputs, channels_first, reporter)
            or _by_op(model, subgraph, outputs, reporter, locale)
        )
    except OpletError as error:
        reporter.warn(str(error))
        return None


def _by_tables(
    model: Model, subgraph: int, outputs: Mapping[int, tuple[str, tuple[int, ...]]], reporter: Reporter, locale: str
) -> Detector | None:
    graph = (model.lazy_root.subgraphs or ())[subgraph]
    indices = [] if graph.outputs is None else [int(index) for index in graph.outputs]
    said = [tensor_metadata(model, subgraph, place, output=True) or TensorMetadata() for place in range(len(indices))]
    parts: dict[str, int] = {}
    for place, each in enumerate(said):
        role = _role(each)
        if role and indices[place] in outputs:
            parts.setdefault(role, place)
    if not {"boxes", "classes", "scores"} <= parts.keys():
        return None
    content = said[parts["boxes"]].content
    properties = content.content_properties if content is not None else None
    if not isinstance(properties, BoundingBoxProperties):
        return None
    order = (0, 1, 2, 3) if properties.index is None or not len(properties.index) else tuple(int(i) for i in properties.index)
    if sorted(order) != [0, 1, 2, 3] or not isinstance(properties.type, BoundingBoxType):
        raise TensorError(
            f"The boxes in the metadata of {model.name} have the order {list(order)}, which is none of four numbers."
        )
    classes, scores = indices[parts["classes"]], indices[parts["scores"]]
    labels = output_labels(model, subgraph, classes, outputs[classes][0], reporter, locale=locale, values=True)
    rules = score_rules_of(model, subgraph, parts["scores"])
    if str(rules):
        reporter.say(f"output '{outputs[scores][0]}': scores {rules}, as the model's metadata say")
    number = indices[parts["number"]] if "number" in parts else -1
    in_pixels = properties.coordinate_type == CoordinateType.PIXEL
    return Detector(indices[parts["boxes"]], classes, scores, number, order, properties.type, in_pixels, labels, rules)


def _by_anchors(
    model: Model, subgraph: int, outputs: Mapping[int, tuple[str, tuple[int, ...]]], reporter: Reporter, locale: str
) -> Detector | None:
    """Return the outputs of a model whose metadata have anchors: boxes and scores, by the names in the metadata, else in that order."""
    graph = (model.lazy_root.subgraphs or ())[subgraph]
    indices = [] if graph.outputs is None else [int(index) for index in graph.outputs]
    if len(indices) != 2 or not set(indices) <= outputs.keys():
        return None
    said = [tensor_metadata(model, subgraph, place, output=True) or TensorMetadata() for place in range(2)]
    first, second = (1, 0) if [each.name for each in said] == ["score", "location"] else (0, 1)
    boxes, scores = indices[first], indices[second]
    found = anchored_in(model, subgraph, outputs[boxes][1], outputs[scores][1])
    if found is None:
        return None
    rules = ScoreRules(None, score_rules_of(model, subgraph, second).threshold)
    labels = output_labels(model, subgraph, scores, outputs[scores][0], reporter, locale=locale, values=False)
    note = f", {rules}" if str(rules) else ""
    reporter.say(
        f"outputs '{outputs[boxes][0]}' and '{outputs[scores][0]}': objects that overlap by {MOST_SHARED} at most{note}, as MediaPipe does"
    )
    return Detector(boxes, scores=scores, labels=labels, rules=rules, anchored=found)


def _by_op(
    model: Model, subgraph: int, outputs: Mapping[int, tuple[str, tuple[int, ...]]], reporter: Reporter, locale: str
) -> Detector | None:
    """Return the outputs of the op that writes boxes (top, left, bottom, right), classes, scores, and their number."""
    for node in (model.lazy_root.subgraphs or ())[subgraph].operators or ():
        written = [] if node.outputs is None else node.outputs.tolist()
        if len(written) == 4 and set(written) <= outputs.keys() and model.op_of(node)[1] == _POSTPROCESS:
            boxes, classes, scores, number = written
            labels = output_labels(model, subgraph, classes, outputs[classes][0], reporter, locale=locale, values=True)
            return Detector(boxes, classes, scores, number, (1, 0, 3, 2), labels=labels)
    return None


def _role(said: TensorMetadata) -> str:
    """Return what an output of a detector holds: "boxes", "classes", "scores", "number" or ""."""
    if said.content is not None and isinstance(said.content.content_properties, BoundingBoxProperties):
        return "boxes"
    if any(file.type == AssociatedFileType.TENSOR_VALUE_LABELS for file in said.associated_files or ()):
        return "classes"
    name = (said.name or "").lower()
    for word, role in (("number", "number"), ("score", "scores"), ("categor", "classes"), ("class", "classes")):
        if word in name:
            return role
    return ""


def _by_ultralytics(
    model: Model, outputs: Mapping[int, tuple[str, tuple[int, ...]]], channels_first: bool, reporter: Reporter
) -> Detector | None:
    try:
        attached_files(model)
    except ModelError:  # what is said of labels and pictures tells it
        return None
    said = ultralytics_of(model)
    if said is None:
        return None
    for index, (name, shape) in outputs.items():
        found = exported_as(said, shape, channels_first)
        if found is None:
            continue
        rest = "" if found.selected else f", and boxes of one class that overlap by more than {MOST_OVERLAP}"
        reporter.say(
            f"output '{name}': objects with the names of '{shown(said.file)}', scores up to {LEAST_SCORE} left out{rest}, as ultralytics does"
        )
        return Detector(index, labels=said.names, exported=found)
    return None


def _finite(values: Array) -> Array:
    """Return values of a damaged model as numbers that integers can have."""
    return np.clip(np.nan_to_num(values.astype(np.float64), nan=-1), -(2.0**31), 2.0**31)


def _whole(values: Array) -> Array:
    return np.rint(_finite(values)).astype(np.int64)


def _boundaries(boxes: Array, kind: BoundingBoxType) -> Array:
    first, second = boxes[:, :2], boxes[:, 2:]
    if kind is BoundingBoxType.UPPER_LEFT:
        second = first + second
    elif kind is BoundingBoxType.CENTER:
        first, second = first - second / 2, first + second / 2
    return np.concatenate([first, second], 1)
