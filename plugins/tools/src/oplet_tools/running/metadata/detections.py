"""What a model's file says of its outputs: labels of scores, and which of them are a detector's boxes, classes and scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from oplet import Model
from oplet.errors import TensorError
from oplet.schema import tables
from oplet.schema.enums import BuiltinOperator
from oplet.texts import shown
from oplet_tools.running.metadata.labels import fitting_labels, labels_of
from oplet_tools.running.metadata.tables import AXIS_LABELS, ENTRY, VALUE_LABELS
from oplet_tools.running.run import RunResult, Value

__all__ = ["Detection", "Detector", "attached_labels", "detections", "detector_of"]

#: The op that detectors end with; it writes boxes, classes, scores, and how many of them there are.
_POSTPROCESS = "TFLite_Detection_PostProcess"
_Tell = Callable[[str], None]


@dataclass(frozen=True)
class Detection:
    """One object that a detector has found.

    Attributes:
        label: the label of its class, "" if there is none.
        class_: the number of its class.
        score: its score.
        box: its top, left, bottom and right edge, as fractions of the picture's height and width.
    """

    label: str
    class_: int
    score: float
    box: tuple[float, float, float, float]

    def as_dict(self) -> dict[str, object]:
        """Return it for JSON."""
        return {"label": self.label, "class": self.class_, "score": self.score, "box": list(self.box)}


@dataclass(frozen=True)
class Detector:
    """The outputs of a detector, by their names, and the labels of its classes.

    Attributes:
        boxes: the output with edges of boxes.
        classes: the output with classes.
        scores: the output with scores.
        count: the output with the number of detections.
        labels: the labels in the model's metadata, by class; empty if there are none.
    """

    boxes: str
    classes: str
    scores: str
    count: str
    labels: tuple[str, ...]

    @property
    def outputs(self) -> frozenset[str]:
        """The names of its outputs."""
        return frozenset((self.boxes, self.classes, self.scores, self.count))


def attached_labels(model: Model, result: RunResult, complain: _Tell, say: _Tell) -> dict[str, tuple[str, ...]]:
    """Return the labels of outputs that are one row of scores, by their names, as the model's metadata have them.

    Args:
        model: the model that was run.
        result: its result.
        complain: called with a message where labels are named and cannot be taken.
        say: called with a message where they are taken.
    """
    if model.metadata(ENTRY) is None:
        return {}
    index, subgraph = _subgraph(model, result)
    outputs = [] if subgraph.outputs is None else subgraph.outputs.tolist()
    found = {}
    for value in result.outputs:
        place = value.details["index"]
        if place not in outputs or not 1 < value.array.size == max(value.array.shape, default=1):
            continue
        labels = fitting_labels(model, index, outputs.index(place), value.name, value.array.size, complain, say)
        if labels:
            found[value.name] = labels
    return found


def detector_of(model: Model, result: RunResult, complain: _Tell, say: _Tell) -> Detector | None:
    """Return which outputs are those of a detector; None if the model ends in none.

    Args:
        model: the model that was run.
        result: its result.
        complain: called with a message where labels are named and cannot be taken.
        say: called with a message where they are taken.
    """
    index, subgraph = _subgraph(model, result)
    names = {value.details["index"]: value.name for value in result.outputs}
    for node in subgraph.operators or []:
        op, name, _ = model.op_of(node)
        written = [] if node.outputs is None else node.outputs.tolist()
        if (
            op is BuiltinOperator.CUSTOM
            and name == _POSTPROCESS
            and len(written) == 4
            and all(place in names for place in written)
        ):
            outputs = [] if subgraph.outputs is None else subgraph.outputs.tolist()
            labels = _class_labels(model, index, [outputs.index(place) for place in written if place in outputs], complain, say)
            boxes, classes, scores, count = (names[place] for place in written)
            return Detector(boxes, classes, scores, count, labels)
    return None


def detections(detector: Detector, outputs: Sequence[Value], labels: Sequence[str] = ()) -> list[Detection]:
    """Return what a detector has found, the highest scores first.

    Args:
        detector: its outputs.
        outputs: their values.
        labels: labels of classes, which go before those in the model's metadata.

    Raises:
        TensorError: the outputs do not have the shapes of a detector's.
    """
    values: Mapping[str, Value] = {value.name: value for value in outputs}
    boxes, classes, scores, count = (
        values[name].displayed.astype(np.float64) for name in (detector.boxes, detector.classes, detector.scores, detector.count)
    )
    if (
        boxes.ndim != 3
        or boxes.shape[2] != 4
        or classes.shape != boxes.shape[:2]
        or scores.shape != classes.shape
        or count.size != 1
    ):
        raise TensorError(
            f"The outputs '{detector.boxes}' {list(boxes.shape)}, '{detector.classes}' {list(classes.shape)} and '{detector.scores}' "
            f"{list(scores.shape)} are not those of a detector."
        )
    named = labels or detector.labels
    most = int(np.clip(np.nan_to_num(count.reshape(())), 0, scores.size))
    found = []
    for box, kind, score in zip(boxes[0, :most].tolist(), classes[0, :most].tolist(), scores[0, :most].tolist()):
        number = int(kind) if np.isfinite(kind) else -1
        found.append(Detection(named[number] if 0 <= number < len(named) else "", number, score, tuple(box)))
    return sorted(found, key=lambda each: -each.score)  # as they are, by rule; a sort keeps the order of equal ones


def _subgraph(model: Model, result: RunResult) -> tuple[int, tables.SubGraph]:
    """Return the subgraph that was run, with its index."""
    signatures = {signature.signature_key or "": signature.subgraph_index for signature in model.root.signature_defs or []}
    index = signatures.get(result.signature, 0)
    return index, (model.root.subgraphs or [])[index]


def _class_labels(model: Model, subgraph: int, positions: Sequence[int], complain: _Tell, say: _Tell) -> tuple[str, ...]:
    """Return the labels of classes that the metadata have for one of a detector's outputs, the classes' own first."""
    if model.metadata(ENTRY) is None:
        return ()
    for position in [*positions[1:2], *positions[:1], *positions[2:]]:
        try:
            found = labels_of(model, subgraph, position, (VALUE_LABELS, AXIS_LABELS))
        except TensorError as error:
            complain(str(error))
            return ()
        if found is not None:
            say(f"classes: labels of '{shown(found.file)}', as the model's metadata say")
            return found.labels
    return ()
