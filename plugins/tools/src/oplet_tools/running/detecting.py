"""Objects that a detector found in a run, with boxes in the pixels of the picture that was given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from numpy.typing import NDArray

from oplet import Model
from oplet_tools.metadata.detections import Detector, detector_of
from oplet_tools.metadata.output_rules import Reporter
from oplet_tools.running.values.notices import Notice

__all__ = ["FoundObject", "Objects", "PictureInput", "detector_in", "objects_in", "picture_input"]

Array = NDArray[Any]


class FoundObject(NamedTuple):
    """An object in a picture.

    Attributes:
        label: the label of its class; "" if there is none.
        number: the number of its class.
        score: its score.
        box: left, top, right and bottom.
        points: corners of a turned box, or keypoints: x, y, and how visible it is if the model says that.
    """

    label: str
    number: int
    score: float
    box: tuple[float, float, float, float]
    points: tuple[tuple[float, ...], ...] = ()


class Objects(NamedTuple):
    """The objects of a run.

    Attributes:
        unit: "pixels" if boxes are in pixels of the picture, "parts" if in parts of the input's width and height.
        found: the objects, the highest score first.
        points: what their points are: "corners", "keypoints", or "" for none.
    """

    unit: str
    found: list[FoundObject]
    points: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return a dictionary of them, for JSON."""
        return {"unit": self.unit, "found": list(map(self._as_dict, self.found))}

    def _as_dict(self, one: FoundObject) -> dict[str, Any]:
        told = {"label": one.label, "number": one.number, "score": one.score, "box": list(one.box)}
        return {**told, self.points: list(map(list, one.points))} if self.points else told


class PictureInput(NamedTuple):
    """The input that takes the picture.

    Attributes:
        name: its name.
        channels_first: whether its channels come before its rows.
    """

    name: str
    channels_first: bool


def picture_input(inputs: Mapping[str, Mapping[str, Any]]) -> PictureInput | None:
    """Return the first input that takes pictures, by the details of inputs; None if there is none."""
    for name, details in inputs.items():
        shape = [int(dim) for dim in details["shape"]]
        if len(shape) == 4 and shape[0] == 1 and (shape[3] in (1, 3) or shape[1] in (1, 3)):
            return PictureInput(name, shape[3] not in (1, 3))
    return None


def detector_in(
    model: Model,
    subgraph: int,
    inputs: Mapping[str, Mapping[str, Any]],
    outputs: Mapping[str, Mapping[str, Any]],
    reporter: Reporter,
    *,
    locale: str = "",
) -> Detector | None:
    """Return how objects are read out of the outputs of a model that takes a picture; None if it is no detector.

    Args:
        model: the model.
        subgraph: the index of the subgraph that runs.
        inputs: details of the inputs, by name.
        outputs: details of the outputs, by name.
        reporter: told what is taken of the metadata.
        locale: the language of labels; "" for the first.
    """
    picture = picture_input(inputs)
    if picture is None:
        return None
    shapes = {int(each["index"]): (name, tuple(int(dim) for dim in each["shape"])) for name, each in outputs.items()}
    return detector_of(model, subgraph, shapes, picture.channels_first, reporter, locale=locale)


def objects_in(
    detector: Detector, picture: PictureInput, given: Array, notices: Sequence[Notice], outputs: Mapping[int, Array]
) -> Objects:
    """Return the objects of a run.

    Args:
        detector: how they are read.
        picture: the input that takes the picture.
        given: its value.
        notices: notices of what was done to inputs, which tell the part of a picture that the input shows.
        outputs: real values of the outputs, by tensor index.
    """
    height, width = given.shape[-2:] if picture.channels_first else given.shape[-3:-1]
    areas = [each.facts["area"] for each in notices if each.input == picture.name and "area" in each.facts]
    left, top, right, bottom = areas[0] if areas else (0, 0, 1, 1)
    sides = [each.facts["sides"] for each in notices if each.input == picture.name and "sides" in each.facts]
    exported = detector.exported
    # As ultralytics has it, nothing but a turned box leads out of the picture.
    most = tuple(sides[0] if sides else (1, 1)) if exported is not None and not exported.turned else None

    def placed(point: Sequence[float]) -> tuple[float, ...]:
        x, y = left + point[0] * (right - left), top + point[1] * (bottom - top)
        return (x, y, *point[2:]) if most is None else (min(max(x, 0), most[0]), min(max(y, 0), most[1]), *point[2:])

    found = []
    shown = (bottom - top, right - left) if areas else None
    for each in detector.read(outputs, (height, width), shown):
        (a, b), (c, d) = placed(each.box[:2]), placed(each.box[2:])
        found.append(FoundObject(each.label, each.number, each.score, (a, b, c, d), tuple(map(placed, each.points))))
    points = "" if exported is None else "corners" if exported.turned else "keypoints" if exported.keypoints[0] else ""
    return Objects("pixels" if areas else "parts", found, points)
