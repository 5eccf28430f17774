"""What a model's metadata say of the results of an output: labels of its scores or of its values, a calibration, the least score."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from oplet import Model
from oplet.errors import ModelError, TensorError
from oplet.texts import shown
from oplet_tools.metadata.labels import AttachedLabels, labels_of
from oplet_tools.metadata.scores import ScoreRules, score_rules_of
from oplet_tools.metadata.tables import BoundingBoxProperties, model_metadata

__all__ = ["OutputRules", "Reporter", "has_readable_tables", "output_labels", "output_rules"]


class Reporter(Protocol):
    """Protocol: receives messages on which parts of the metadata are used, and which cannot be."""

    def say(self, text: str) -> None:
        """Report which metadata are used, and how."""

    def warn(self, text: str) -> None:
        """Warn of metadata that cannot be used."""


class OutputRules(NamedTuple):
    """Labels, calibration and threshold of an output's scores, by the model's metadata."""

    labels: tuple[str, ...] = ()  #: The label of each score, by index; empty for none.
    scores: ScoreRules = ScoreRules()  #: Calibration and threshold of the scores.


def output_rules(
    model: Model,
    subgraph: int,
    tensor: int,
    name: str,
    size: int,
    reporter: Reporter,
    *,
    locale: str = "",
    labelled: bool = False,
) -> OutputRules:
    """Return labels, calibration and threshold that the metadata have for an output of `size` scores; report what is used.

    Metadata that cannot be read, or do not fit the number of scores, are reported and ignored. A detector's scores are those of boxes,
    whose rules `detector_of` reads.

    Args:
        subgraph: the subgraph's index.
        tensor: the tensor's index.
        name: the output's name in messages.
        size: the number of scores.
        reporter: receives the messages.
        locale: the language of the labels; "" for the first.
        labelled: whether the user gives labels, so that those in the metadata are ignored.
    """
    position = _position(model, subgraph, tensor)
    if position is None:
        return OutputRules()
    labels: tuple[str, ...] = ()
    if not labelled:
        labels = _labels(model, subgraph, position, name, size, reporter, locale)
    if not has_readable_tables(model):  # what is said of labels tells it
        return OutputRules(labels)
    if _finds_boxes(model, subgraph):
        return OutputRules(labels)
    try:
        scores = score_rules_of(model, subgraph, position)
    except TensorError as error:
        reporter.warn(str(error))
        return OutputRules(labels)
    calibration = scores.calibration
    if calibration is not None and len(calibration.parameters) != size:
        reporter.warn(
            f"'{shown(calibration.file)}' in the model's metadata calibrates {len(calibration.parameters)} scores and '{name}' has {size}, so "
            "they stay as they are."
        )
        scores = ScoreRules(None, scores.threshold)
    if str(scores):
        reporter.say(f"output '{name}': scores {scores}, as the model's metadata say")
    return OutputRules(labels, scores)


def output_labels(
    model: Model, subgraph: int, tensor: int, name: str, reporter: Reporter, *, locale: str = "", values: bool
) -> tuple[str, ...]:
    """Return the labels that the metadata have for an output, and report their source; empty if there are none.

    Args:
        values: whether labels are of the output's values, which are class indices; else of the indices of its last axis.

    The other arguments are those of `output_rules`.
    """
    position = _position(model, subgraph, tensor)
    found = None if position is None else _found(model, subgraph, position, reporter, locale, values=values)
    if found is None:
        return ()
    what = "values are numbers of labels" if values else "labels"
    reporter.say(f"output '{name}': {what} of '{shown(found.file)}', as the model's metadata say")
    return found.labels


def has_readable_tables(model: Model) -> bool:
    """Return whether a model's TFLITE_METADATA, if it has some, can be read."""
    try:
        model_metadata(model)
    except ModelError:
        return False
    return True


def _finds_boxes(model: Model, subgraph: int) -> bool:
    """Return whether the metadata name an output of boxes."""
    said = model_metadata(model)
    graphs = (said.subgraph_metadata or ()) if said is not None else ()
    outputs = (graphs[subgraph].output_tensor_metadata or ()) if subgraph < len(graphs) else ()
    return any(
        each.content is not None and isinstance(each.content.content_properties, BoundingBoxProperties) for each in outputs
    )


def _labels(model: Model, subgraph: int, position: int, name: str, size: int, reporter: Reporter, locale: str) -> tuple[str, ...]:
    found = _found(model, subgraph, position, reporter, locale, values=False)
    if found is None:
        return ()
    file = shown(found.file)
    if len(found.labels) != size:
        reporter.warn(
            f"'{file}' in the model's metadata has {len(found.labels)} labels for {size} scores of '{name}', and is not used."
        )
        return ()
    reporter.say(f"output '{name}': labels of '{file}', as the model's metadata say")
    return found.labels


def _found(model: Model, subgraph: int, position: int, reporter: Reporter, locale: str, *, values: bool) -> AttachedLabels | None:
    try:
        found = labels_of(model, subgraph, position, locale=locale, values=values)
    except TensorError as error:
        reporter.warn(str(error))
        return None
    if found is not None and found.missing:
        reporter.warn(f"{found.missing}; '{shown(found.file)}' is taken.")
    return found


def _position(model: Model, subgraph: int, tensor: int) -> int | None:
    """Return the position of a tensor among the outputs of a subgraph; None if it is none of them."""
    graphs = model.lazy_root.subgraphs or ()
    found = graphs[subgraph].outputs if subgraph < len(graphs) else None
    outputs = [] if found is None else [int(index) for index in found]
    return outputs.index(tensor) if tensor in outputs else None
